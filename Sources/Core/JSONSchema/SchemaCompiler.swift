import Documents

/// Compiles a schema into nodes: its root, and everything that it refers to. Each location in the
/// file becomes one node, so that schemas may refer to themselves; nothing here recurses.
struct SchemaCompiler {
    /// The maximum number of schemas that apply to one value through one another: `$ref`, `allOf`
    /// etc.
    static let maximumChain = 32
    /// The maximum total number of schemas.
    private static let maximumNodes = 50_000

    private(set) var nodes: [SchemaNode] = []
    let draft: SchemaDraft
    private let references: SchemaReferences
    private var indices: [String: Int] = [:]
    private var pending: [(index: Int, location: SchemaLocation)] = []

    init(_ root: DocumentValue) throws(JSONSchemaError) {
        draft = try Self.draft(of: root)
        references = SchemaReferences(root, draft: draft)
        let location = SchemaLocation(value: root, pointer: "", base: "")
        _ = try index(of: references.entering(location))
        while let next = pending.popLast() {
            try compile(next.location, into: next.index)
        }
        var chains = InPlaceChains(nodes)
        try chains.check()
    }

    private static func draft(of root: DocumentValue) throws(JSONSchemaError) -> SchemaDraft {
        guard let named = root["$schema"] else { return .draft7 }
        guard case .string(let uri) = named else {
            throw JSONSchemaError("$schema must be a string", at: "#/$schema")
        }
        guard let draft = SchemaDraft(uri: uri) else {
            throw JSONSchemaError(
                "$schema is \(uri.quoted); supported are draft-04, draft-06 and draft-07 "
                    + "(http://json-schema.org/draft-07/schema#)", at: "#/$schema")
        }
        return draft
    }

    /// The node of a location, which is compiled later if it is new.
    mutating func index(of location: SchemaLocation) throws(JSONSchemaError) -> Int {
        if let known = indices[location.pointer] { return known }
        guard nodes.count < Self.maximumNodes else {
            throw JSONSchemaError("it has more than \(Self.maximumNodes) schemas")
        }
        indices[location.pointer] = nodes.count
        pending.append((nodes.count, location))
        nodes.append(SchemaNode(location: "#\(location.pointer)"))
        return nodes.count - 1
    }

    /// The node of a schema that is a keyword's value.
    mutating func index(
        _ value: DocumentValue, _ steps: [String], in location: SchemaLocation
    ) throws(JSONSchemaError) -> Int {
        var inner = location
        for step in steps { inner = inner.descending(to: value, step: step) }
        return try index(of: references.entering(inner))
    }

    /// A node that no value satisfies.
    mutating func nothing(at pointer: String) -> Int {
        nodes.append(SchemaNode(location: "#\(pointer)", general: [.nothing]))
        return nodes.count - 1
    }

    private mutating func compile(_ location: SchemaLocation, into index: Int)
        throws(JSONSchemaError)
    {
        switch location.value {
        case .boolean(let value) where draft > .draft4:
            if !value { nodes[index].general = [.nothing] }
        case .dictionary:
            // Everything beside $ref is ignored (draft-07 §8.3).
            if let reference = location.value["$ref"] {
                try compile(reference: reference, in: location, into: index)
            } else {
                try refuseUnsupported(in: location)
                var keywords = SchemaKeywords(location)
                try keywords.compile(with: &self)
                keywords.node.location = nodes[index].location
                nodes[index] = keywords.node
            }
        default:
            let expected = draft > .draft4 ? "an object or a boolean" : "an object"
            throw JSONSchemaError(
                "a schema must be \(expected), not \(location.value.kind)",
                at: "#\(location.pointer)")
        }
    }

    private mutating func compile(
        reference: DocumentValue, in location: SchemaLocation, into index: Int
    ) throws(JSONSchemaError) {
        guard case .string(let text) = reference else {
            throw JSONSchemaError("$ref must be a string", at: "#\(location.pointer)/$ref")
        }
        let target = try references.find(text, from: location)
        nodes[index].general = [.reference(try self.index(of: target))]
    }

    private func refuseUnsupported(in location: SchemaLocation) throws(JSONSchemaError) {
        guard case .dictionary(let dictionary) = location.value else { return }
        for member in dictionary.members {
            if SchemaDraft.unsupported.contains(member.key) {
                throw JSONSchemaError(
                    "the keyword \(member.key) is in none of draft-04 to draft-07",
                    at: "#\(location.pointer)")
            }
            let later = SchemaDraft.later.first { $0.keyword == member.key }
            if let later, later.draft > draft {
                throw JSONSchemaError(
                    "the keyword \(member.key) was introduced in draft-0\(later.draft.rawValue); "
                        + "this schema uses draft-0\(draft.rawValue)", at: "#\(location.pointer)")
            }
        }
    }
}

/// The schemas that apply to one value through one another.
private struct InPlaceChains {
    private let nodes: [SchemaNode]
    /// The length of the longest chain from each node; 0 if not known yet, -1 while it is being
    /// followed.
    private var lengths: [Int]

    init(_ nodes: [SchemaNode]) {
        self.nodes = nodes
        lengths = Array(repeating: 0, count: nodes.count)
    }

    /// - Throws: if a chain leads back to its beginning, so that it would never end, or if one is
    ///   longer than allowed.
    mutating func check() throws(JSONSchemaError) {
        for node in nodes.indices where lengths[node] == 0 { try follow(node) }
    }

    private mutating func follow(_ start: Int) throws(JSONSchemaError) {
        var open = [(node: start, rest: nodes[start].inPlace[...])]
        lengths[start] = -1
        while let last = open.indices.last {
            let node = open[last].node
            guard let next = open[last].rest.popFirst() else {
                lengths[node] = 1 + (nodes[node].inPlace.map { lengths[$0] }.max() ?? 0)
                guard lengths[node] <= SchemaCompiler.maximumChain else {
                    throw JSONSchemaError(
                        "more than \(SchemaCompiler.maximumChain) schemas apply to one value "
                            + "through one another", at: nodes[node].location)
                }
                open.removeLast()
                continue
            }
            if lengths[next] == -1 {
                throw JSONSchemaError(
                    "$ref leads back to itself without descending into a value",
                    at: nodes[next].location)
            }
            if lengths[next] == 0 {
                lengths[next] = -1
                open.append((next, nodes[next].inPlace[...]))
            }
        }
    }
}
