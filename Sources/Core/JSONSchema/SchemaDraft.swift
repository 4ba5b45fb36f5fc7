/// The supported drafts of JSON Schema.
enum SchemaDraft: Int, Comparable {
    case draft4 = 4
    case draft6 = 6
    case draft7 = 7

    static func < (left: Self, right: Self) -> Bool { left.rawValue < right.rawValue }

    /// The draft that `$schema` names.
    init?(uri: String) {
        let name = uri.hasSuffix("#") ? String(uri.dropLast()) : uri
        switch name {
        case "http://json-schema.org/draft-04/schema", "https://json-schema.org/draft-04/schema":
            self = .draft4
        case "http://json-schema.org/draft-06/schema", "https://json-schema.org/draft-06/schema":
            self = .draft6
        case "http://json-schema.org/draft-07/schema", "https://json-schema.org/draft-07/schema":
            self = .draft7
        default: return nil
        }
    }

    /// The keyword that identifies a schema.
    var identifier: String { self == .draft4 ? "id" : "$id" }

    /// Keywords that impose requirements, with the draft that introduced them. In a schema of an
    /// earlier draft they would be ignored silently, and so are refused.
    static let later: [(keyword: String, draft: SchemaDraft)] = [
        ("const", .draft6), ("contains", .draft6), ("propertyNames", .draft6), ("if", .draft7),
    ]

    /// Keywords of later drafts, and of the third, that impose requirements: refused.
    static let unsupported: Set<String> = [
        "$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef",
        "$vocabulary", "dependentRequired", "dependentSchemas", "disallow", "divisibleBy",
        "extends", "maxContains", "minContains", "prefixItems", "unevaluatedItems",
        "unevaluatedProperties",
    ]
}
