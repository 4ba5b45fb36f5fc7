import HTTPCore

/// Builds YAML text. Every value that is not one of our own words is quoted.
struct YAMLText {
    private(set) var text = ""

    /// Adds a line, indented by two spaces per level.
    mutating func line(_ level: Int, _ content: String) {
        text += String(repeating: "  ", count: level) + content + "\n"
    }

    /// Adds a line for each key of a mapping that is printed.
    mutating func lines<Values>(_ level: Int, _ table: KeyTable<Values>, _ values: Values) {
        for key in table.keys {
            guard let text = key.text(values) else { continue }
            if let block = key.block, key.isBlock(values) {
                line(level, "\(key.name):")
                block(&self, level + 1, values)
            } else {
                line(level, "\(key.name): \(text)")
            }
        }
    }

    /// Adds a section with its keys.
    mutating func section<Values>(
        _ name: SectionName, _ table: KeyTable<Values>, _ values: Values
    ) {
        line(0, "\(name.rawValue):")
        lines(1, table, values)
    }

    /// Adds an element of a list: a mapping whose first key is printed.
    mutating func element<Values>(_ level: Int, _ table: KeyTable<Values>, _ values: Values) {
        var inner = YAMLText()
        inner.lines(level + 1, table, values)
        let indented = inner.text.dropFirst(2 * (level + 1))
        text += String(repeating: "  ", count: level) + "- " + indented
    }

    /// A flow sequence of quoted texts.
    static func list(_ texts: [String]) -> String {
        "[\(texts.map(quoted).joined(separator: ", "))]"
    }

    /// A double-quoted scalar (YAML 1.2 §7.3.1). Characters that are not allowed in YAML or are
    /// unsafe on a terminal are escaped.
    static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
                .unassigned:
                result += "\\U" + String(hexadecimal: scalar.value, digits: 8)
            default:
                if scalar == "\"" || scalar == "\\" { result += "\\" }
                result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }
}
