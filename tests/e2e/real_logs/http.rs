//! One request over any connection, for services that stand for AWS.

use std::io::{self, BufRead, BufReader, Read, Write};

/// Reads a request; `reply` is given its path and body, and gives status and body.
pub fn answer<S>(stream: &S, reply: impl Fn(&str, &str) -> (u16, Vec<u8>)) -> io::Result<()>
where
    for<'s> &'s S: Read + Write,
{
    let (mut reader, mut request, mut length) = (BufReader::new(stream), String::new(), 0);
    reader.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line)?;
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
        if line.trim().is_empty() {
            break;
        }
    }
    let mut body = Vec::new();
    reader.take(length).read_to_end(&mut body)?;
    let (status, answer) = reply(request.split(' ').nth(1).unwrap_or_default(), &String::from_utf8_lossy(&body));
    let mut writer = stream;
    write!(
        writer,
        "HTTP/1.1 {status} x\r\nContent-Length: {}\r\nX-Aws-Ec2-Metadata-Token-Ttl-Seconds: 21600\r\nConnection: \
         close\r\n\r\n",
        answer.len()
    )?;
    writer.write_all(&answer)
}
