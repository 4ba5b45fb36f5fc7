import ArgumentParser
import CLinux
import Documents

/// When JSON is printed indented and in colours.
enum PrettyOutput: String, Sendable, CaseIterable, ExpressibleByArgument {
    case auto, always, never

    /// Whether it is, on standard output as it is.
    var isOn: Bool {
        switch self {
        case .auto: isatty(STDOUT_FILENO) == 1
        case .always: true
        case .never: false
        }
    }
}

/// JSON for people: indented, and in colours unless `NO_COLOR` is set (https://no-color.org).
struct PrettyJSON {
    /// The maximum size of a text that is indented. Longer ones are printed as they are.
    static let maximumBytes = 8 << 20

    private let hasColors: Bool
    private var text = ""

    /// - Returns: `nil` if the text is not JSON, or too long.
    static func text(of bytes: [UInt8], hasColors: Bool) -> String? {
        guard bytes.count <= maximumBytes,
            let value = try? JSONDocument.value(
                of: bytes, limits: DocumentLimits(bytes: maximumBytes))
        else { return nil }
        var pretty = PrettyJSON(hasColors: hasColors)
        pretty.append(value, indentation: "")
        return pretty.text + "\n"
    }

    private init(hasColors: Bool) { self.hasColors = hasColors }

    /// The colours of the parts (ECMA-48, Select Graphic Rendition).
    private enum Color: String {
        case key = "34;1"
        case string = "32"
        case number = "36"
        case word = "35"
    }

    private mutating func append(_ part: String, _ color: Color) {
        text += hasColors ? "\u{1B}[\(color.rawValue)m\(part)\u{1B}[0m" : part
    }

    private mutating func append(_ value: DocumentValue, indentation: String) {
        let inner = indentation + "  "
        switch value {
        case .string, .data, .date: append(TerminalText.escaped(value.description), .string)
        case .number: append(value.description, .number)
        case .null, .boolean: append(value.description, .word)
        case .array(let values):
            guard !values.isEmpty else {
                text += "[]"
                return
            }
            text += "["
            for (index, value) in values.enumerated() {
                text += (index > 0 ? ",\n" : "\n") + inner
                append(value, indentation: inner)
            }
            text += "\n\(indentation)]"
        case .dictionary(let dictionary):
            guard !dictionary.members.isEmpty else {
                text += "{}"
                return
            }
            text += "{"
            for (index, member) in dictionary.members.enumerated() {
                text += (index > 0 ? ",\n" : "\n") + inner
                append(TerminalText.escaped(DocumentValue.string(member.key).description), .key)
                text += ": "
                append(member.value, indentation: inner)
            }
            text += "\n\(indentation)}"
        }
    }
}
