@testable import Documents

/// The value as JSON, with data and dates in their JSON form.
func dump(_ value: DocumentValue) -> String {
    switch value {
    case .null: "null"
    case .boolean(let value): "\(value)"
    case .number(let number): number.text
    case .string(let text): quoted(text)
    case .data(let bytes): "data(\(bytes))"
    case .date(let seconds): "date(\(seconds))"
    case .array(let values): "[\(values.map(dump).joined(separator: ","))]"
    case .dictionary(let dictionary):
        "{"
            + dictionary.members.map { "\(quoted($0.key)):\(dump($0.value))" }
            .joined(separator: ",") + "}"
    }
}

private func quoted(_ text: String) -> String {
    var result = "\""
    for scalar in text.unicodeScalars {
        switch scalar {
        case "\"", "\\": result += "\\\(scalar)"
        case "\n": result += "\\n"
        default: result.unicodeScalars.append(scalar)
        }
    }
    return result + "\""
}
