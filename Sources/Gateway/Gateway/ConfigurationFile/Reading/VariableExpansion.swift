import PinfoldConfiguration

/// `${` that does not begin a variable.
struct VariableSyntaxError: Error, Equatable {}

/// The parts of a scalar: texts and variables.
///
/// `${NAME}` is a variable. Of several `$` before a `{`, two are one of the text: `$${` is `${`,
/// and `$$${NAME}` is `$` and a variable. Any other `$` means itself, as in `^a$` or `$1`.
enum VariableSyntax {
    enum Part: Equatable {
        case text(String)
        case variable(String)
    }

    private static let dollar = UInt8(ascii: "$")
    private static let brace = UInt8(ascii: "{")

    /// The parts of a text; `nil` if there is no `${` in it, so that it stands for itself.
    static func parts(of text: String) throws(VariableSyntaxError) -> [Part]? {
        let bytes = Array(text.utf8)
        guard bytes.indices.dropLast().contains(where: { isOpening(bytes, at: $0) }) else {
            return nil
        }
        var parts: [Part] = []
        var literal: [UInt8] = []
        var index = 0
        while index < bytes.count {
            let dollars = bytes[index...].prefix { $0 == dollar }.count
            guard dollars > 0, index + dollars < bytes.count, bytes[index + dollars] == brace
            else {
                literal += bytes[index..<(index + max(1, dollars))]
                index += max(1, dollars)
                continue
            }
            literal += [UInt8](repeating: dollar, count: dollars / 2)
            index += dollars + 1
            guard dollars % 2 == 1 else {
                literal.append(brace)
                continue
            }
            guard let end = bytes[index...].firstIndex(of: UInt8(ascii: "}")),
                isVariableName(bytes[index..<end])
            else { throw VariableSyntaxError() }
            if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
            literal = []
            parts.append(.variable(String(decoding: bytes[index..<end], as: UTF8.self)))
            index = end + 1
        }
        if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
        return parts
    }

    /// How a text is written that has no variables.
    static func escaped(_ text: String) -> String {
        let bytes = Array(text.utf8)
        var result: [UInt8] = []
        var dollars = 0
        for byte in bytes {
            if byte == brace { result += [UInt8](repeating: dollar, count: dollars) }
            dollars = byte == dollar ? dollars + 1 : 0
            result.append(byte)
        }
        return String(decoding: result, as: UTF8.self)
    }

    private static func isOpening(_ bytes: [UInt8], at index: Int) -> Bool {
        bytes[index] == dollar && bytes[index + 1] == brace
    }

    /// Whether bytes are a name as POSIX has them: letters, digits and `_`, no digit first.
    private static func isVariableName(_ bytes: ArraySlice<UInt8>) -> Bool {
        guard let first = bytes.first, bytes.count <= 128 else { return false }
        return !(UInt8(ascii: "0")...UInt8(ascii: "9")).contains(first)
            && bytes.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

/// Puts the values of variables into the scalars of a document, never into its keys.
///
/// A value is put in after the document has been parsed: it can never become a key, a list or a
/// mapping, and an empty one is not a missing one. In a scalar without quotes it counts as written
/// without quotes, so that it can be a number or a boolean.
struct VariableExpansion {
    /// The maximum size of all texts with values, in bytes: an alias can repeat a long one often.
    static let maximumBytes = 1 << 20

    let variables: EnvironmentVariables
    private(set) var errors: [ConfigurationError] = []
    /// What was used.
    private(set) var values: [String: String] = [:]
    private var usedBytes = 0

    init(_ variables: EnvironmentVariables) { self.variables = variables }

    /// How messages show a value, besides as it is.
    static func forms(_ value: String) -> [String] {
        [String(quoted(value, maximum: .max).dropFirst().dropLast())]
    }

    /// The node with the values of its variables. Where that fails it is as written, and the error
    /// is recorded.
    ///
    /// - Parameter path: The key's path, for errors.
    mutating func expand(_ node: ConfigNode, path: String) -> ConfigNode {
        var node = node
        switch node.content {
        case .null: break
        case .scalar(let text, let isPlain):
            do throws(ConfigurationError) {
                guard let scalar = try expanded(text, node.origin, path) else { break }
                node.content = .scalar(scalar.text, isPlain: isPlain)
                if !scalar.values.isEmpty {
                    node.written = WrittenScalar(text: text, values: scalar.values)
                }
            } catch {
                if errors.count < ConfigurationValidation.maximumErrors { errors.append(error) }
            }
        case .sequence(let values):
            var expanded: [ConfigNode] = []
            for (index, value) in values.enumerated() {
                expanded.append(expand(value, path: "\(path)[\(index)]"))
            }
            node.content = .sequence(expanded)
        case .mapping(var entries):
            for index in entries.indices {
                entries[index].value = expand(
                    entries[index].value, path: Section.path(path, entries[index].key))
            }
            node.content = .mapping(entries)
        }
        return node
    }

    /// The text with its variables' values; `nil` if there is nothing to do.
    private mutating func expanded(
        _ text: String, _ origin: ConfigurationError.Origin, _ path: String
    ) throws(ConfigurationError) -> (text: String, values: [String: String])? {
        func failure(_ problem: String, expected: String) -> ConfigurationError {
            ConfigurationError(origin: origin, key: path, problem: problem, expected: expected)
        }
        let parts: [VariableSyntax.Part]
        do throws(VariableSyntaxError) {
            guard let found = try VariableSyntax.parts(of: text) else { return nil }
            parts = found
        } catch {
            throw failure(
                "`${` begins no variable",
                expected: "${NAME} for an environment variable, or $${ for the characters ${")
        }
        var result = ""
        var used: [String: String] = [:]
        for part in parts {
            switch part {
            case .text(let text): result += text
            case .variable(let name):
                guard let bytes = variables[name] else {
                    throw failure(
                        "the environment variable \(quoted(name, maximum: 128)) is not set",
                        expected: "a variable in the gateway's environment, or $${ for the "
                            + "characters ${")
                }
                guard let value = String(validating: bytes, as: UTF8.self) else {
                    throw failure(
                        "the value of the environment variable \(quoted(name, maximum: 128)) is "
                            + "not UTF-8", expected: "text in UTF-8")
                }
                used[name] = value
                result += value
                usedBytes += value.utf8.count
                guard usedBytes <= Self.maximumBytes else {
                    throw failure(
                        "the values of variables are too long",
                        expected: "at most \(Quantity.text(bytes: Self.maximumBytes)) in all")
                }
            }
        }
        values.merge(used) { $1 }
        return (result, used)
    }
}

extension ConfigNode {
    /// A message about this node without the values of its variables, and with their names.
    func concealed(in message: String) -> String {
        guard let written, case .scalar(let text, _) = content else { return message }
        let message = concealed(in: message, text, written)
        let isNamed = written.values.keys.contains { message.contains("${\($0)}") }
        return isNamed ? message : "\(message) (written \(quoted(written.text)))"
    }

    private func concealed(
        in message: String, _ text: String, _ written: WrittenScalar
    ) -> String {
        var message = message
        for (shown, instead) in [
            (quoted(text), quoted(written.text)), (quoted(path: text), quoted(path: written.text)),
        ] {
            message = message.replacing([(Array(shown.utf8), instead)])
        }
        for (name, value) in written.values.sorted(by: { $0.key < $1.key }) {
            let hidden = "${\(name)}"
            if value.utf8.count >= Self.foundBytes {
                message = message.replacing(
                    ([value] + VariableExpansion.forms(value)).map { (Array($0.utf8), hidden) })
            }
            // A message may also show a part of it.
            if Self.shares(message, Array(value.utf8)) {
                return "is not valid with the value of \(hidden)"
            }
        }
        return message
    }

    /// A value of so many bytes is found where it is part of a text.
    private static let foundBytes = 4
    /// So many bytes of a value are not there by accident.
    private static let sharedBytes = 8

    /// Whether a message has a part of a value.
    private static func shares(_ message: String, _ value: [UInt8]) -> Bool {
        guard value.count > sharedBytes else { return false }
        let parts = (0...(value.count - sharedBytes)).map { value[$0..<($0 + sharedBytes)] }
        let known = Set(parts)
        let bytes = Array(message.utf8)
        guard bytes.count >= sharedBytes else { return false }
        return (0...(bytes.count - sharedBytes)).contains {
            known.contains(bytes[$0..<($0 + sharedBytes)])
        }
    }
}

extension ConfigurationValidation {
    /// Takes over the errors of an expansion, and what no message may show from then on.
    func add(_ expansion: VariableExpansion) {
        for error in expansion.errors { report(error) }
        variables = UsedVariables(values: expansion.values, forms: VariableExpansion.forms)
    }
}
