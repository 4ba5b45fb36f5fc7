/// The environment variables that a configuration uses: their values, which may be secret, and
/// where they are written.
package struct UsedVariables: Sendable {
    /// A value as written: `${NAME}` in place of the variables' values. Other characters are those
    /// of the value, except that a file's path is absolute.
    package enum Written: Sendable, Equatable {
        case scalar(String)
        case list([String])
    }

    /// Shorter values are recognized only where they are written: they are in too many texts.
    package static let recognizedBytes = 8

    /// By the variables' names.
    package let values: [String: String]
    /// By the paths of the keys, such as `listeners[0].address`.
    package let places: [String: Written]
    /// Longer texts first: one may be a part of another.
    private let recognized: [(name: String, text: [UInt8])]

    /// - Parameter forms: The forms in which messages show a value, besides the value itself.
    package init(
        values: [String: String] = [:], places: [String: Written] = [:],
        forms: (String) -> [String] = { _ in [] }
    ) {
        self.values = values
        self.places = places
        recognized = values.filter { $0.value.utf8.count >= Self.recognizedBytes }
            .flatMap { name, value in
                Set([value] + forms(value)).map { (name: name, text: Array($0.utf8)) }
            }
            .sorted { ($1.text.count, $0.name) < ($0.text.count, $1.name) }
    }

    package var isEmpty: Bool { values.isEmpty }

    /// A text, such as a message, with `${NAME}` in place of the value of each variable, unless
    /// that is short.
    package func concealed(in text: String) -> String {
        guard !recognized.isEmpty else { return text }
        return text.replacing(recognized.map { ($0.text, "${\($0.name)}") })
    }
}

/// The same configuration can be written in several ways: they do not count in comparisons.
extension UsedVariables: Equatable {
    package static func == (left: UsedVariables, right: UsedVariables) -> Bool { true }
}

extension String {
    /// The text with each occurrence of some others replaced, compared byte by byte. Where several
    /// begin at the same place, the first in the list counts.
    package func replacing(_ parts: [(part: [UInt8], replacement: String)]) -> String {
        let bytes = Array(utf8)
        var result: [UInt8] = []
        var copied = 0
        var index = 0
        while index < bytes.count {
            let found = parts.first { part, _ in
                part.first == bytes[index] && bytes[index...].starts(with: part)
            }
            guard let found else {
                index += 1
                continue
            }
            result += bytes[copied..<index]
            result += found.replacement.utf8
            index += found.part.count
            copied = index
        }
        guard copied > 0 else { return self }
        return String(decoding: result + bytes[copied...], as: UTF8.self)
    }
}
