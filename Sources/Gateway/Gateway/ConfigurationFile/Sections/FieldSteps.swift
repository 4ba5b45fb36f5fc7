import HTTPCore
import PinfoldConfiguration

/// Steps that change the fields of a head or the parameters of a query.
protocol FieldSteps: Equatable {
    var remove: [String] { get set }
    var rename: [NamedValue] { get set }
    var set: [NamedValue] { get set }
    var add: [NamedValue] { get set }
    var defaults: [NamedValue] { get set }

    /// The rules for names and values.
    static var grammar: StepGrammar { get }
    init()
}

/// The keys of the steps, in the order in which they are applied.
enum FieldStep: String, CaseIterable {
    case remove
    case rename
    case set
    case add
    case defaults
}

/// The rules for the names and values of steps.
struct StepGrammar {
    /// What the names refer to, in the plural, for errors.
    let plural: String
    let isName: (String) -> Bool
    let expectedName: String
    let isValue: (String) -> Bool
    let expectedValue: String
    /// A canonical form, equal for equivalent names.
    let folded: (String) -> String

    /// The maximum number of names in a step, and of values of a name.
    static let maximumCount = 100
    /// The maximum length of a name, in bytes.
    static let maximumNameBytes = 128
    /// The maximum length of a value, in bytes.
    static let maximumValueBytes = 4096
}

extension HeaderRules: FieldSteps {
    static var grammar: StepGrammar {
        StepGrammar(
            plural: "header fields",
            isName: { isToken($0) && $0.utf8.count <= StepGrammar.maximumNameBytes },
            expectedName: "the name of a header field",
            isValue: isFieldValue,
            expectedValue: "at most \(StepGrammar.maximumValueBytes) bytes without control "
                + "characters and without leading or trailing white space",
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
            expectedName: "the name of a parameter, not percent-encoded: 1 to "
                + "\(StepGrammar.maximumNameBytes) bytes without control characters",
            isValue: { value in
                value.utf8.count <= StepGrammar.maximumValueBytes
                    && value.unicodeScalars.allSatisfy(isShown)
            },
            expectedValue: "at most \(StepGrammar.maximumValueBytes) bytes without control "
                + "characters, not percent-encoded",
            folded: { $0 })
    }

    /// Whether a terminal displays the character.
    private static func isShown(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .format, .lineSeparator, .paragraphSeparator, .privateUse, .surrogate,
            .unassigned:
            false
        default: true
        }
    }
}

/// Whether a text is a token (RFC 9110 §5.6.2: `1*tchar`).
func isToken(_ text: String) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy(ByteClass.isToken)
}

/// Whether a text is a field value (RFC 9110 §5.5), which may be empty.
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

extension ConfigurationKey {
    /// Steps, which are printed only if there are any.
    static func steps<Steps: FieldSteps>(
        _ name: String, _ place: WritableKeyPath<Values, Steps>
    ) -> Self {
        ConfigurationKey(name, place, table: Steps.table).printed {
            $0[keyPath: place] != Steps()
        }
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

    /// The entries of a mapping whose keys are names, each once. An empty key returns `nil` without
    /// an error.
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

    /// The entries with valid names. The others are reported.
    private func validlyNamed(_ what: String, by grammar: StepGrammar) -> [Named]? {
        named(what)?.filter { entry in
            let isValid = grammar.isName(entry.name)
            if !isValid {
                entry.failName(
                    "\(quoted(entry.name)) is not valid", expected: grammar.expectedName)
            }
            return isValid
        }
    }

    fileprivate func renamed(by grammar: StepGrammar) -> [NamedValue]? {
        validlyNamed("names to new names", by: grammar)?.compactMap { entry in
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
        validlyNamed("names to values", by: grammar)?.flatMap { entry in
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

    /// A value. It may be a secret, so errors do not show it.
    private func value(by grammar: StepGrammar) -> String? {
        guard let text = text(expected: grammar.expectedValue) else { return nil }
        guard grammar.isValue(text) else {
            fail("is not a valid value", expected: grammar.expectedValue)
            return nil
        }
        return text
    }
}

extension YAMLText {
    /// A flow mapping of quoted texts. Consecutive values of the same name become a list.
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
