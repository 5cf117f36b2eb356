//! The fields of Kubernetes' messages that are read have the numbers and types that their `generated.proto` gives them.

use super::{download, table};
use nodewhy::kube_client::protobuf::schema::{Many, MessageField, Shape};
use std::fs;
use testkit::protobuf::messages;

/// As `generated.proto` writes the field, without the packages of its type.
fn declared(field: &MessageField) -> String {
    let type_ = match field.shape {
        Shape::Text => "string",
        Shape::Flag => "bool",
        Shape::Number => "int",
        Shape::Json => "bytes",
        Shape::Time => "Time",
        Shape::Object(message) | Shape::Only(message) => message.name,
    };
    let MessageField { number, name, .. } = field;
    match field.many {
        Many::One => format!("optional {type_} {name} = {number};"),
        Many::List | Many::Items => format!("repeated {type_} {name} = {number};"),
        Many::Map => format!("map<string, {type_}> {name} = {number};"),
    }
}

/// The fields of a message in a `.proto`.
fn fields_of(proto: &str, name: &str) -> Vec<String> {
    let body = proto.split_once(&format!("\nmessage {name} {{\n")).and_then(|(_, rest)| rest.split_once("\n}"));
    let lines = body.map_or("", |(body, _)| body).lines().map(str::trim);
    let short = |line: &str| {
        let words = line.split(' ').map(|word| {
            let word = word.rsplit_once('.').map_or(word, |(_, last)| last);
            match word {
                "int32" | "int64" => "int",
                "MicroTime" => "Time",
                other => other,
            }
        });
        words.collect::<Vec<_>>().join(" ")
    };
    lines.filter(|line| line.ends_with(';') && !line.starts_with("//")).map(short).collect()
}

#[test]
fn every_field_of_a_message_stands_in_its_proto() {
    let table = table();
    let sources = download(&table.pins);
    assert!(messages().len() > 15);
    for (name, message) in messages() {
        let mut path = message.package.splitn(3, '/');
        let module = format!("{}/{}", path.next().expect("k8s.io"), path.next().expect("a module"));
        let folder = path.next().expect("a package of it");
        for version in &table.pins[&module] {
            let file = sources[&(module.as_str(), version.as_str())].join(folder).join("generated.proto");
            let proto = fs::read_to_string(&file).expect("its proto");
            let there = fields_of(&proto, name);
            for field in message.fields {
                let wanted = declared(field);
                assert!(there.contains(&wanted), "{name} of {}: {wanted} is not among {there:#?}", file.display());
            }
        }
    }
}

#[test]
fn a_field_with_another_number_or_type_is_told() {
    let proto = "\nmessage A \
                 {\n  // text\n  optional string name = 1;\n\n  map<string, .k8s.io.B> labels = 2;\n}\n\nmessage B \
                 {\n  optional int64 n = 7;\n}\n";
    assert_eq!(fields_of(proto, "A"), ["optional string name = 1;", "map<string, B> labels = 2;"]);
    assert_eq!(fields_of(proto, "B"), ["optional int n = 7;"]);
    assert_eq!(fields_of(proto, "C"), [""; 0]);
}
