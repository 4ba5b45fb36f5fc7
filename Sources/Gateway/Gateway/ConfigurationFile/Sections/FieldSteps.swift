import HTTPCore
import PinfoldConfiguration

/// Steps by which the fields of a head, or the parameters of a query, are changed.
protocol FieldSteps: Equatable {
    var remove: [String] { get set }
    var rename: [NamedValue] { get set }
    var set: [NamedValue] { get set }
    var add: [NamedValue] { get set }
    var defaults: [NamedValue] { get set }

    /// What names and values are.
    static var grammar: StepGrammar { get }
    init()
}

/// The keys of the steps, in the order in which they are taken.
enum FieldStep: String, CaseIterable {
    case remove
    case rename
    case set
    case add
    case defaults
}

/// What the names and values of steps are.
struct StepGrammar {
    /// What is named, in the plural.
    let plural: String
    let isName: (String) -> Bool
    let expectedName: String
    let isValue: (String) -> Bool
    let expectedValue: String
    /// The same for names that are the same.
    let folded: (String) -> String

    /// Names of one step, and lines of one name.
    static let maximumCount = 100
    /// Bytes of a name.
    static let maximumNameBytes = 128
    /// Bytes of a value.
    static let maximumValueBytes = 4096
}

extension HeaderRules: FieldSteps {
    static var grammar: StepGrammar {
        StepGrammar(
            plural: "request header fields",
            isName: { isToken($0) && $0.utf8.count <= StepGrammar.maximumNameBytes },
            expectedName: "the name of a request header field",
            isValue: isFieldValue,
            expectedValue: "at most \(StepGrammar.maximumValueBytes) bytes without control "
                + "characters and without blanks at either end",
            folded: \.lowercasedASCII)
    }
}

extension QueryRules: FieldSteps {
    static var grammar: StepGrammar {
        StepGrammar(
            plural: "parameters",
            isName: { name in
                !name.isEmpty && name.utf8.count <= StepGrammar.maximumNameBytes
                    && name.unicodeScalars.allSatisfy(isShown)
            },
            expectedName: "the name of a parameter, without percent-encoding: 1 to "
                + "\(StepGrammar.maximumNameBytes) bytes without control characters",
            isValue: { value in
                value.utf8.count <= StepGrammar.maximumValueBytes
                    && value.unicodeScalars.allSatisfy(isShown)
            },
            expectedValue: "at most \(StepGrammar.maximumValueBytes) bytes without control "
                + "characters, and without percent-encoding",
            folded: { $0 })
    }

    /// Not for what no terminal shows.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
            .unassigned:
            false
        default: true
        }
    }
}

/// RFC 9110 §5.6.2: `1*tchar`.
func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(ByteClass.isToken)
}

/// RFC 9110 §5.5, an empty one included.
private func isFieldValue(_ text: String) -> Bool {
    func isBlank(_ byte: UInt8?) -> Bool { byte == 0x20 || byte == 0x09 }
    return text.utf8.count <= StepGrammar.maximumValueBytes
        && text.utf8.allSatisfy(ByteClass.isFieldValue) && !isBlank(text.utf8.first)
        && !isBlank(text.utf8.last)
}

extension FieldSteps {
    /// The keys of the steps.
    static var table: KeyTable<Self> {
        func pairs(
            _ step: FieldStep, _ place: WritableKeyPath<Self, [NamedValue]>,
            _ reading: @escaping (Field) -> [NamedValue]?
        ) -> ConfigurationKey<Self> {
            ConfigurationKey(
                step.rawValue, place, reading: { reading($1) }, text: YAMLText.mapping)
        }
        return KeyTable(keys: [
            ConfigurationKey(
                FieldStep.remove.rawValue, \.remove, reading: { $1.names(by: grammar) },
                text: YAMLText.list),
            pairs(.rename, \.rename) { $0.renamed(by: grammar) },
            pairs(.set, \.set) { $0.values(by: grammar) },
            pairs(.add, \.add) { $0.values(by: grammar, areLists: true) },
            pairs(.defaults, \.defaults) { $0.values(by: grammar) },
        ])
    }
}

extension Field {
    /// An entry of a mapping whose keys are names.
    struct Named {
        let name: String
        let origin: ConfigurationError.Origin
        let value: Field

        func failName(_ problem: String, expected: String) {
            value.validation.report(origin, value.path, problem, expected: expected)
        }
    }

    /// The entries of a mapping whose keys are names, each once; an empty key is none (nil without
    /// an error).
    func named(_ what: String) -> [Named]? {
        guard case .mapping(let entries) = node.content else {
            if case .null = node.content { return nil }
            fail("is \(node.content.name)", expected: "a mapping of \(what)")
            return nil
        }
        guard entries.count <= StepGrammar.maximumCount else {
            fail(
                "has \(entries.count) entries", expected: "at most \(StepGrammar.maximumCount)")
            return nil
        }
        return Section.distinct(entries, in: self).map { entry in
            let path = Section.path(path, entry.key)
            return Named(
                name: entry.key, origin: entry.keyOrigin,
                value: Field(node: entry.value, path: path, validation: validation))
        }
    }

    fileprivate func names(by grammar: StepGrammar) -> [String]? {
        guard let elements = boundedList(of: grammar.plural) else { return nil }
        guard elements.count <= StepGrammar.maximumCount else {
            fail(
                "has \(elements.count) entries", expected: "at most \(StepGrammar.maximumCount)")
            return nil
        }
        return elements.compactMap { element in
            element.parsed(expected: grammar.expectedName) { grammar.isName($0) ? $0 : nil }
        }
    }

    /// The entries whose names are right.
    private func rightlyNamed(_ what: String, by grammar: StepGrammar) -> [Named]? {
        named(what)?.filter { entry in
            let isRight = grammar.isName(entry.name)
            if !isRight {
                entry.failName(
                    "\(quoted(entry.name)) is not valid", expected: grammar.expectedName)
            }
            return isRight
        }
    }

    fileprivate func renamed(by grammar: StepGrammar) -> [NamedValue]? {
        rightlyNamed("names to new names", by: grammar)?.compactMap { entry in
            let name = entry.value.parsed(expected: grammar.expectedName) {
                grammar.isName($0) ? $0 : nil
            }
            guard let name else { return nil }
            if grammar.folded(name) == grammar.folded(entry.name) {
                entry.value.fail("is renamed to itself", expected: "another name")
            }
            return NamedValue(entry.name, name)
        }
    }

    fileprivate func values(
        by grammar: StepGrammar, areLists: Bool = false
    ) -> [NamedValue]? {
        rightlyNamed("names to values", by: grammar)?.flatMap { entry in
            var fields = [entry.value]
            if areLists, let elements = entry.value.elements {
                fields = elements
                if elements.isEmpty {
                    entry.value.fail("adds nothing", expected: "a value, or a list of values")
                }
                if elements.count > StepGrammar.maximumCount {
                    entry.value.fail(
                        "has \(elements.count) values",
                        expected: "at most \(StepGrammar.maximumCount)")
                    fields = []
                }
            }
            return fields.compactMap { field in
                field.value(by: grammar).map { NamedValue(entry.name, $0) }
            }
        }
    }

    /// A value; it may be a secret, which no error repeats.
    private func value(by grammar: StepGrammar) -> String? {
        guard let text = text(expected: grammar.expectedValue) else { return nil }
        guard grammar.isValue(text) else {
            fail("is no legal value", expected: grammar.expectedValue)
            return nil
        }
        return text
    }
}

extension YAMLText {
    /// A flow mapping of quoted texts; of a name that stands several times in a row, a list.
    static func mapping(_ pairs: [NamedValue]) -> String {
        var entries: [(name: String, values: [String])] = []
        for pair in pairs {
            if entries.last?.name == pair.name {
                entries[entries.count - 1].values.append(pair.value)
            } else {
                entries.append((pair.name, [pair.value]))
            }
        }
        let texts = entries.map { entry in
            let value = entry.values.count == 1 ? quoted(entry.values[0]) : list(entry.values)
            return "\(quoted(entry.name)): \(value)"
        }
        return texts.isEmpty ? "{}" : "{ \(texts.joined(separator: ", ")) }"
    }
}
