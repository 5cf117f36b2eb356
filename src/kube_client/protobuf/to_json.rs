//! Protobuf to JSON, by the schema.
//!
//! It always gives JSON: where something is no protobuf stands a text instead, of which the reader of that object
//! complains as of any other odd value.

use super::schema::{ANSWERS, Many, Message, MessageField, Shape};
use super::wire::{Fields, Malformed, WireValue};
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::value::RawValue;

const BROKEN: &str = "the protobuf of this is broken";

/// An object or a list.
pub fn object(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len() / 2);
    whole(bytes, &mut out);
    out
}

/// An event of a watch.
/// Source: k8s.io/apimachinery v0.36.3 pkg/apis/meta/v1/generated.proto `WatchEvent`, pkg/runtime/generated.proto
/// `RawExtension`.
pub fn event(bytes: &[u8], out: &mut Vec<u8>) {
    or_broken(out, |out| {
        out.extend(b"{\"type\":");
        string(bytes_of(last(bytes, 1)?)?, out)?;
        out.extend(b",\"object\":");
        let extension = bytes_of(last(bytes, 2)?)?;
        whole(bytes_of(last(extension, 1)?)?, out);
        out.push(b'}');
        Ok(())
    });
}

/// Converts a message with the envelope that states its type.
/// Source: k8s.io/apimachinery v0.36.3 pkg/runtime/serializer/protobuf/protobuf.go `protoEncodingPrefix`,
/// pkg/runtime/generated.proto `Unknown`, `TypeMeta`.
fn whole(bytes: &[u8], out: &mut Vec<u8>) {
    or_broken(out, |out| {
        let unknown = bytes.strip_prefix(b"k8s\0").ok_or(Malformed)?;
        let types = bytes_of(last(unknown, 1)?)?;
        let said = |number| std::str::from_utf8(bytes_of(last(types, number)?)?).map_err(|_| Malformed);
        let (api_version, kind) = (said(1)?, said(2)?);
        let message = ANSWERS.iter().find(|m| api_version == "v1" && m.name == kind).ok_or(Malformed)?;
        out.extend(b"{\"apiVersion\":");
        string(api_version.as_bytes(), out)?;
        out.extend(b",\"kind\":");
        string(kind.as_bytes(), out)?;
        fields(bytes_of(last(unknown, 2)?)?, message, true, out)?;
        out.push(b'}');
        Ok(())
    });
}

fn or_broken(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>) -> Result<(), Malformed>) {
    let begun = out.len();
    if write(out).is_err() {
        out.truncate(begun);
        out.push(b'"');
        out.extend(BROKEN.as_bytes());
        out.push(b'"');
    }
}

/// The values of a field.
fn all(message: &[u8], number: u64) -> impl Iterator<Item = Result<WireValue<'_>, Malformed>> {
    Fields(message).filter_map(move |field| match field {
        Ok((n, value)) => (n == number).then_some(Ok(value)),
        Err(malformed) => Some(Err(malformed)),
    })
}

/// The last value of a field. It wins over earlier ones.
fn last(message: &[u8], number: u64) -> Result<Option<WireValue<'_>>, Malformed> {
    all(message, number).try_fold(None, |_, value| Ok(Some(value?)))
}

/// The bytes of a value. An absent value is empty.
fn bytes_of(value: Option<WireValue<'_>>) -> Result<&[u8], Malformed> {
    match value {
        None => Ok(&[]),
        Some(WireValue::Bytes(bytes)) => Ok(bytes),
        Some(_) => Err(Malformed),
    }
}

fn number_of(value: Option<WireValue<'_>>) -> Result<i64, Malformed> {
    match value {
        None => Ok(0),
        Some(WireValue::Number(number)) => Ok(number.cast_signed()),
        Some(_) => Err(Malformed),
    }
}

/// The fields of a message that are read. Those that are empty are left out, as Go leaves them out.
fn fields(bytes: &[u8], message: &Message, mut follows: bool, out: &mut Vec<u8>) -> Result<(), Malformed> {
    for field in message.fields {
        let begun = out.len();
        if follows {
            out.push(b',');
        }
        string(field.name.as_bytes(), out)?;
        out.push(b':');
        if written(bytes, field, out)? {
            follows = true;
        } else {
            out.truncate(begun);
        }
    }
    Ok(())
}

/// Writes what the message has of a field, and says whether that is anything.
fn written(message: &[u8], field: &MessageField, out: &mut Vec<u8>) -> Result<bool, Malformed> {
    let (open, close) = match field.many {
        Many::One => {
            let Some(found) = last(message, field.number)? else { return Ok(false) };
            let is_empty = matches!(
                (&field.shape, found),
                (Shape::Text, WireValue::Bytes([])) | (Shape::Flag | Shape::Number, WireValue::Number(0))
            );
            if !is_empty {
                write(found, &field.shape, out)?;
            }
            return Ok(!is_empty);
        }
        Many::List | Many::Items => (b'[', b']'),
        Many::Map => (b'{', b'}'),
    };
    let begun = out.len();
    for found in all(message, field.number) {
        let mut found = found?;
        out.push(if out.len() == begun { open } else { b',' });
        if field.many == Many::Map {
            let entry = bytes_of(Some(found))?;
            string(bytes_of(last(entry, 1)?)?, out)?;
            out.push(b':');
            found = last(entry, 2)?.unwrap_or(WireValue::Bytes(&[]));
        }
        write(found, &field.shape, out)?;
    }
    if out.len() == begun {
        if field.many != Many::Items {
            return Ok(false);
        }
        out.push(open);
    }
    out.push(close);
    Ok(true)
}

fn write(found: WireValue<'_>, shape: &Shape, out: &mut Vec<u8>) -> Result<(), Malformed> {
    match (shape, found) {
        (Shape::Text, WireValue::Bytes(bytes)) => string(bytes, out)?,
        (Shape::Flag, WireValue::Number(number)) => out.extend((number != 0).to_string().into_bytes()),
        (Shape::Number, WireValue::Number(number)) => out.extend(number.cast_signed().to_string().into_bytes()),
        (Shape::Json | Shape::Time, WireValue::Bytes([])) => out.extend(b"null"),
        (Shape::Json, WireValue::Bytes(bytes)) => {
            let json: &RawValue = serde_json::from_slice(bytes).map_err(|_| Malformed)?;
            // A watch has an event a line. Within a text there is no bare newline.
            out.extend(json.get().bytes().map(|byte| if byte == b'\n' { b' ' } else { byte }));
        }
        (Shape::Time, WireValue::Bytes(bytes)) => time(bytes, out)?,
        (Shape::Object(message), WireValue::Bytes(bytes)) => or_broken(out, |out| {
            out.push(b'{');
            fields(bytes, message, false, out)?;
            out.push(b'}');
            Ok(())
        }),
        (Shape::Only(message), WireValue::Bytes(bytes)) => {
            let field = message.fields.first().ok_or(Malformed)?;
            write(last(bytes, field.number)?.unwrap_or(WireValue::Bytes(&[])), &field.shape, out)?;
        }
        _ => return Err(Malformed),
    }
    Ok(())
}

/// An empty one is none.
/// Source: k8s.io/apimachinery v0.36.3 pkg/apis/meta/v1/generated.proto `Time`, `MicroTime`, time_proto.go `ProtoTime`.
fn time(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    let nanos = u32::try_from(number_of(last(bytes, 2)?)?).map_err(|_| Malformed)?;
    let time: DateTime<Utc> = DateTime::from_timestamp(number_of(last(bytes, 1)?)?, nanos).ok_or(Malformed)?;
    string(time.to_rfc3339_opts(SecondsFormat::AutoSi, true).as_bytes(), out)
}

/// Go writes what is no UTF-8 as JSON does the same way.
fn string(bytes: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
    serde_json::to_writer(out, &String::from_utf8_lossy(bytes)).map_err(|_| Malformed)
}
