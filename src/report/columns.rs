//! Rows in columns like kubectl's.

use super::visible::in_a_line;

/// The head and each row as a line; a row has as many cells as the head.
pub(super) fn lines<'r>(head: &[&str], rows: impl Iterator<Item = &'r [String]>) -> Vec<String> {
    let rows: Vec<Vec<String>> = rows.map(|row| row.iter().map(|cell| in_a_line(cell)).collect()).collect();
    let mut widths: Vec<usize> = head.iter().map(|name| name.len()).collect();
    for row in &rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let line = |cells: &mut dyn Iterator<Item = &str>| {
        let cells: Vec<String> = cells.zip(&widths).map(|(cell, width)| format!("{cell:<width$}")).collect();
        cells.join("   ").trim_end().to_owned() + "\n"
    };
    let head = line(&mut head.iter().copied());
    let rows = rows.iter().map(|row| line(&mut row.iter().map(String::as_str)));
    std::iter::once(head).chain(rows).collect()
}
