/// A compiled schema: its requirements, by kind of value. Other schemas are referred to by index.
struct SchemaNode: Sendable {
    /// The location in the file, as a JSON Pointer after `#`.
    var location: String
    var general: [GeneralRule] = []
    var numbers: [NumberRule] = []
    var texts: [TextRule] = []
    var arrays: [ArrayRule] = []
    var objects: [ObjectRule] = []

    /// The schemas that apply to the same value.
    var inPlace: [Int] {
        general.flatMap(\.schemas) + objects.flatMap(\.inPlace)
    }
}

/// A set of value types.
struct TypeSet: OptionSet, Sendable {
    let rawValue: UInt8

    static let null = TypeSet(rawValue: 1)
    static let boolean = TypeSet(rawValue: 2)
    static let number = TypeSet(rawValue: 4)
    static let integer = TypeSet(rawValue: 8)
    static let string = TypeSet(rawValue: 16)
    static let array = TypeSet(rawValue: 32)
    static let object = TypeSet(rawValue: 64)

    static let names: [(name: String, type: TypeSet)] = [
        ("null", .null), ("boolean", .boolean), ("number", .number), ("integer", .integer),
        ("string", .string), ("array", .array), ("object", .object),
    ]
}

/// The requirements for every value.
enum GeneralRule: Sendable {
    /// The schema `false`.
    case nothing
    case reference(Int)
    /// `floats`: whether `1.0` is an integer, as it is from draft-06 on.
    case types(TypeSet, floats: Bool)
    /// One of the values, in canonical form.
    case values(ByteTable, keyword: String)
    case all([Int])
    case any([Int])
    case one([Int])
    case not(Int)
    case conditional(Int, then: Int?, else: Int?)

    var schemas: [Int] {
        switch self {
        case .nothing, .types, .values: []
        case .reference(let schema), .not(let schema): [schema]
        case .all(let schemas), .any(let schemas), .one(let schemas): schemas
        case .conditional(let condition, let then, let other):
            [condition] + [then, other].compactMap(\.self)
        }
    }

    /// What was required.
    var text: String {
        switch self {
        case .nothing: "no value at all"
        case .reference: "what a $ref refers to"
        case .types(let types, _):
            "type "
                + TypeSet.names.filter { types.contains($0.type) }.map(\.name)
                .joined(separator: " or ")
        case .values(let values, let keyword):
            values.count == 1 ? "one value (\(keyword))" : "one of \(values.count) values (enum)"
        case .all: "all of several schemas (allOf)"
        case .any(let schemas): "one or more of \(schemas.count) schemas (anyOf)"
        case .one(let schemas): "exactly one of \(schemas.count) schemas (oneOf)"
        case .not: "a value that does not satisfy a schema (not)"
        case .conditional: "what if, then and else require"
        }
    }
}

/// The requirements for numbers.
enum NumberRule: Sendable {
    case minimum(NumberBound, isExclusive: Bool)
    case maximum(NumberBound, isExclusive: Bool)
    case multiple(Divisor, text: String)

    var text: String {
        switch self {
        case .minimum(let bound, let isExclusive):
            isExclusive ? "more than \(bound.text)" : "\(bound.text) or more (minimum)"
        case .maximum(let bound, let isExclusive):
            isExclusive ? "less than \(bound.text)" : "\(bound.text) or less (maximum)"
        case .multiple(_, let text): "a multiple of \(text)"
        }
    }
}

/// A limit for numbers.
struct NumberBound: Sendable {
    let decimal: Decimal
    let text: String
    /// The limit as an integer of up to 18 digits, if it is one, for fast comparison.
    let integer: Int64?

    init(_ text: String) {
        decimal = text.withContiguousBytes { Decimal($0) }
        self.text = text.utf8.count > 40 ? "\(text.prefix(40))…" : text
        integer = text.withContiguousBytes { Self.integer($0) }
    }

    /// Below, equal to or above zero if a number is below, equal to or above the limit.
    func comparing(_ number: UnsafeRawBufferPointer) -> Int {
        if let integer, let other = Self.integer(number) {
            return other < integer ? -1 : other > integer ? 1 : 0
        }
        return Decimal(number).compared(to: decimal)
    }

    /// A number without fraction and exponent; `nil` for others.
    static func integer(_ text: UnsafeRawBufferPointer) -> Int64? {
        let isNegative = text.first == UInt8(ascii: "-")
        guard text.count <= 18 else { return nil }
        var value: Int64 = 0
        for byte in text[(isNegative ? 1 : 0)...] {
            guard UInt8(ascii: "0")...UInt8(ascii: "9") ~= byte else { return nil }
            value = value * 10 + Int64(byte & 0xF)
        }
        return isNegative ? -value : value
    }
}

extension String {
    func withContiguousBytes<Result>(_ body: (UnsafeRawBufferPointer) -> Result) -> Result {
        var text = self
        return text.withUTF8 { body(UnsafeRawBufferPointer($0)) }
    }
}

/// The requirements for strings. Lengths are in Unicode characters (code points).
enum TextRule: Sendable {
    case minimumLength(Int)
    case maximumLength(Int)
    case pattern(Pattern)
    case format(TextFormat)

    var text: String {
        switch self {
        case .minimumLength(let count): "\(count) characters or more (minLength)"
        case .maximumLength(let count): "\(count) characters or fewer (maxLength)"
        case .pattern: "a string that matches its pattern"
        case .format(let format): "format \(format.rawValue)"
        }
    }
}

/// The requirements for arrays.
enum ArrayRule: Sendable {
    case minimumCount(Int)
    case maximumCount(Int)
    case items(Int)
    /// A schema for each of the first elements, and one for the others.
    case tuple([Int], others: Int?)
    case contains(Int)
    case unique

    var text: String {
        switch self {
        case .minimumCount(let count): "\(count) elements or more (minItems)"
        case .maximumCount(let count): "\(count) elements or fewer (maxItems)"
        case .items, .tuple: "elements that satisfy their schemas (items)"
        case .contains: "an element that satisfies a schema (contains)"
        case .unique: "elements that are all different (uniqueItems)"
        }
    }
}

/// The requirements for objects.
enum ObjectRule: Sendable {
    case minimumCount(Int)
    case maximumCount(Int)
    case members(MemberRules)
    /// Applies to each name, as a string.
    case names(Int)

    var inPlace: [Int] {
        guard case .members(let rules) = self else { return [] }
        return rules.dependencies.compactMap(\.schema)
    }

    /// - Parameter name: the number of the missing name.
    func text(_ name: Int) -> String {
        switch self {
        case .minimumCount(let count): "\(count) members or more (minProperties)"
        case .maximumCount(let count): "\(count) members or fewer (maxProperties)"
        case .members(let rules): "the member \(rules.quoted(name)) (required)"
        case .names: "names that satisfy a schema (propertyNames)"
        }
    }
}

/// The requirements for the members of an object.
final class MemberRules: Sendable {
    struct Dependency: Sendable {
        /// The number of the name whose presence triggers it.
        var trigger: Int
        var names: [Int] = []
        var schema: Int?
    }

    /// The names that the schema mentions.
    let names: ByteTable
    /// The schema of each name.
    let schemas: [Int?]
    let required: [Int]
    let dependencies: [Dependency]
    let patterns: [(pattern: Pattern, schema: Int)]
    /// For members whose name has no schema and matches no pattern.
    let additional: Int?

    init(
        names: ByteTable, schemas: [Int?], required: [Int], dependencies: [Dependency],
        patterns: [(pattern: Pattern, schema: Int)], additional: Int?
    ) {
        self.names = names
        self.schemas = schemas
        self.required = required
        self.dependencies = dependencies
        self.patterns = patterns
        self.additional = additional
    }

    /// Whether the presence of names matters.
    var asksForPresence: Bool { !required.isEmpty || !dependencies.isEmpty }

    func quoted(_ name: Int) -> String {
        let text = String(decoding: names.texts[name], as: UTF8.self)
        return text.unicodeScalars.count > 60 ? "\"\(text.prefix(60))…\"" : "\"\(text)\""
    }
}
