import Documents

extension SchemaKeywords {
    mutating func compileArrays(with compiler: inout SchemaCompiler) throws(JSONSchemaError) {
        if let count = try count("minItems") { node.arrays.append(.minimumCount(count)) }
        if let count = try count("maxItems") { node.arrays.append(.maximumCount(count)) }
        if try boolean("uniqueItems") == true { node.arrays.append(.unique) }
        if let schema = try schema("contains", &compiler) {
            node.arrays.append(.contains(schema))
        }
        guard let items = self["items"] else { return }
        guard case .array(let values) = items else {
            node.arrays.append(.items(try compiler.index(items, ["items"], in: location)))
            return
        }
        var schemas: [Int] = []
        for (index, value) in values.enumerated() {
            schemas.append(try compiler.index(value, ["items", "\(index)"], in: location))
        }
        let others = try additional("additionalItems", &compiler)
        node.arrays.append(.tuple(schemas, others: others))
    }

    mutating func compileObjects(with compiler: inout SchemaCompiler) throws(JSONSchemaError) {
        if let count = try count("minProperties") { node.objects.append(.minimumCount(count)) }
        if let count = try count("maxProperties") { node.objects.append(.maximumCount(count)) }
        if let schema = try schema("propertyNames", &compiler) {
            node.objects.append(.names(schema))
        }
        var rules = MemberKeywords()
        for member in try members("properties") {
            rules.schemas[rules.number(of: member.key)] =
                try compiler.index(member.value, ["properties", member.key], in: location)
        }
        for name in try required() { rules.required.append(rules.number(of: name)) }
        for member in try members("dependencies") {
            rules.dependencies.append(try dependency(member, &rules, &compiler))
        }
        for member in try members("patternProperties") {
            let index = try compiler.index(
                member.value, ["patternProperties", member.key], in: location)
            rules.patterns.append((try pattern(member.key, "patternProperties"), index))
        }
        rules.additional = try additional("additionalProperties", &compiler)
        if let made = rules.made { node.objects.append(.members(made)) }
    }

    private func members(
        _ keyword: String
    ) throws(JSONSchemaError) -> [DocumentDictionary.Member] {
        guard let value = self[keyword] else { return [] }
        guard case .dictionary(let dictionary) = value else { throw error(keyword, "an object") }
        return dictionary.members
    }

    private func required() throws(JSONSchemaError) -> [String] {
        guard let value = self["required"] else { return [] }
        return try names(value, "required")
    }

    private func names(
        _ value: DocumentValue, _ keyword: String
    ) throws(JSONSchemaError) -> [String] {
        guard case .array(let values) = value else { throw error(keyword, "an array of strings") }
        var names: [String] = []
        for value in values {
            guard case .string(let name) = value else {
                throw error(keyword, "an array of strings")
            }
            names.append(name)
        }
        return names
    }

    private func dependency(
        _ member: DocumentDictionary.Member, _ rules: inout MemberKeywords,
        _ compiler: inout SchemaCompiler
    ) throws(JSONSchemaError) -> MemberRules.Dependency {
        var dependency = MemberRules.Dependency(trigger: rules.number(of: member.key))
        if case .array = member.value {
            for name in try names(member.value, "dependencies") {
                dependency.names.append(rules.number(of: name))
            }
        } else {
            dependency.schema = try compiler.index(
                member.value, ["dependencies", member.key], in: location)
        }
        return dependency
    }

    /// A schema, or in draft-04 a Boolean, for what no other schema applies to.
    private func additional(
        _ keyword: String, _ compiler: inout SchemaCompiler
    ) throws(JSONSchemaError) -> Int? {
        guard let value = self[keyword], value != .boolean(true) else { return nil }
        guard value == .boolean(false), compiler.draft == .draft4 else {
            return try compiler.index(value, [keyword], in: location)
        }
        return compiler.nothing(at: "\(location.pointer)/\(keyword)")
    }
}

/// The keywords about members, as read.
private struct MemberKeywords {
    private var names = ByteTable()
    var schemas: [Int: Int] = [:]
    var required: [Int] = []
    var dependencies: [MemberRules.Dependency] = []
    var patterns: [(pattern: Pattern, schema: Int)] = []
    var additional: Int?

    mutating func number(of name: String) -> Int { names.insert(Array(name.utf8)) }

    /// `nil` if there are no requirements.
    var made: MemberRules? {
        guard names.count > 0 || !patterns.isEmpty || additional != nil else { return nil }
        return MemberRules(
            names: names, schemas: (0..<names.count).map { schemas[$0] }, required: required,
            dependencies: dependencies, patterns: patterns, additional: additional)
    }
}
