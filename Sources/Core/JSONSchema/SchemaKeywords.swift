import Documents

/// Reads the keywords of one schema into its node.
struct SchemaKeywords {
    var node = SchemaNode(location: "")
    let location: SchemaLocation

    init(_ location: SchemaLocation) { self.location = location }

    mutating func compile(with compiler: inout SchemaCompiler) throws(JSONSchemaError) {
        try compileTypes(compiler.draft)
        try compileValues()
        try compileNumbers(compiler.draft)
        try compileTexts()
        try compileArrays(with: &compiler)
        try compileObjects(with: &compiler)
        try compileCombinations(with: &compiler)
    }

    subscript(keyword: String) -> DocumentValue? { location.value[keyword] }

    func error(_ keyword: String, _ expected: String) -> JSONSchemaError {
        JSONSchemaError("\(keyword) must be \(expected)", at: "#\(location.pointer)/\(keyword)")
    }

    private mutating func compileTypes(_ draft: SchemaDraft) throws(JSONSchemaError) {
        guard let value = self["type"] else { return }
        var types: TypeSet = []
        let names: [DocumentValue]
        switch value {
        case .array(let values) where !values.isEmpty: names = values
        case .string: names = [value]
        default: throw error("type", "a type or an array of types")
        }
        for case let name in names {
            guard case .string(let text) = name,
                let type = TypeSet.names.first(where: { $0.name == text })
            else {
                let known = TypeSet.names.map(\.name).joined(separator: ", ")
                throw error("type", "of \(known)")
            }
            types.insert(type.type)
        }
        node.general.append(.types(types, floats: draft > .draft4))
    }

    private mutating func compileValues() throws(JSONSchemaError) {
        if let value = self["const"] {
            node.general.append(.values(try table([value], "const"), keyword: "const"))
        }
        guard let value = self["enum"] else { return }
        guard case .array(let values) = value, !values.isEmpty else {
            throw error("enum", "a nonempty array")
        }
        node.general.append(.values(try table(values, "enum"), keyword: "enum"))
    }

    private func table(
        _ values: [DocumentValue], _ keyword: String
    ) throws(JSONSchemaError) -> ByteTable {
        var table = ByteTable()
        for value in values {
            do throws(DocumentError) {
                var form: [UInt8] = []
                CanonicalForm.append(0, of: try Instance(value), to: &form)
                _ = table.insert(form)
            } catch { throw self.error(keyword, "JSON values") }
        }
        return table
    }

    private mutating func compileNumbers(_ draft: SchemaDraft) throws(JSONSchemaError) {
        for (keyword, exclusive) in [
            ("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"),
        ] {
            let isMinimum = keyword == "minimum"
            let add = { (node: inout SchemaNode, text: String, isExclusive: Bool) in
                let bound = NumberBound(text)
                node.numbers.append(
                    isMinimum
                        ? .minimum(bound, isExclusive: isExclusive)
                        : .maximum(bound, isExclusive: isExclusive))
            }
            if draft == .draft4 {
                let isExclusive = try boolean(exclusive) ?? false
                if let text = try number(keyword) {
                    add(&node, text, isExclusive)
                } else if isExclusive {
                    throw error(exclusive, "together with \(keyword) in draft-04")
                }
            } else {
                if let text = try number(keyword) { add(&node, text, false) }
                if let text = try number(exclusive) { add(&node, text, true) }
            }
        }
        guard let text = try number("multipleOf") else { return }
        guard let divisor = Divisor(NumberBound(text).decimal) else {
            throw error("multipleOf", "a number above 0 of up to 18 digits")
        }
        node.numbers.append(.multiple(divisor, text: text))
    }

    private mutating func compileTexts() throws(JSONSchemaError) {
        if let count = try count("minLength") { node.texts.append(.minimumLength(count)) }
        if let count = try count("maxLength") { node.texts.append(.maximumLength(count)) }
        if let value = self["pattern"] {
            guard case .string(let text) = value else { throw error("pattern", "a string") }
            node.texts.append(.pattern(try pattern(text, "pattern")))
        }
        guard let value = self["format"] else { return }
        guard case .string(let name) = value else { throw error("format", "a string") }
        if let format = TextFormat(rawValue: name) { node.texts.append(.format(format)) }
    }

    func pattern(_ text: String, _ keyword: String) throws(JSONSchemaError) -> Pattern {
        do throws(PatternError) { return try Pattern(text) } catch {
            throw JSONSchemaError(
                "the regular expression \(text.quoted) cannot be followed: \(error.reason)",
                at: "#\(location.pointer)/\(keyword)")
        }
    }

    private mutating func compileCombinations(
        with compiler: inout SchemaCompiler
    ) throws(JSONSchemaError) {
        if let schemas = try schemas("allOf", &compiler) { node.general.append(.all(schemas)) }
        if let schemas = try schemas("anyOf", &compiler) { node.general.append(.any(schemas)) }
        if let schemas = try schemas("oneOf", &compiler) { node.general.append(.one(schemas)) }
        if let schema = try schema("not", &compiler) { node.general.append(.not(schema)) }
        if compiler.draft >= .draft7, let condition = try schema("if", &compiler) {
            let then = try schema("then", &compiler)
            let other = try schema("else", &compiler)
            if then != nil || other != nil {
                node.general.append(.conditional(condition, then: then, else: other))
            }
        }
    }

    func schema(
        _ keyword: String, _ compiler: inout SchemaCompiler
    ) throws(JSONSchemaError) -> Int? {
        guard let value = self[keyword] else { return nil }
        return try compiler.index(value, [keyword], in: location)
    }

    func schemas(
        _ keyword: String, _ compiler: inout SchemaCompiler
    ) throws(JSONSchemaError) -> [Int]? {
        guard let value = self[keyword] else { return nil }
        guard case .array(let values) = value, !values.isEmpty else {
            throw error(keyword, "a nonempty array of schemas")
        }
        var indices: [Int] = []
        for (index, value) in values.enumerated() {
            indices.append(try compiler.index(value, [keyword, "\(index)"], in: location))
        }
        return indices
    }

    func count(_ keyword: String) throws(JSONSchemaError) -> Int? {
        guard let text = try number(keyword) else { return nil }
        guard let count = NumberBound(text).decimal.count else {
            throw error(keyword, "a nonnegative integer")
        }
        return count
    }

    private func number(_ keyword: String) throws(JSONSchemaError) -> String? {
        guard let value = self[keyword] else { return nil }
        guard case .number(let number) = value else { throw error(keyword, "a number") }
        return number.text
    }

    func boolean(_ keyword: String) throws(JSONSchemaError) -> Bool? {
        guard let value = self[keyword] else { return nil }
        guard case .boolean(let boolean) = value else { throw error(keyword, "true or false") }
        return boolean
    }
}
