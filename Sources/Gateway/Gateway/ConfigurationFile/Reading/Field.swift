/// One value with its key's path, and functions that convert it. A conversion that fails reports
/// the error and returns `nil`. The caller continues with the default, so that all errors are
/// found.
struct Field {
    let node: ConfigNode
    /// The key's path, such as `listeners[0].address`.
    let path: String
    let validation: ConfigurationValidation

    /// Reports an error in the value.
    func fail(_ problem: String, expected: String) {
        validation.report(node.origin, path, node.concealed(in: problem), expected: expected)
    }

    /// Warns that the value is valid, but probably does not have the intended effect.
    func warn(_ text: String) {
        validation.warn(node.origin, path, node.concealed(in: text))
    }

    /// A scalar as text, with or without quotes.
    func text(expected: String) -> String? {
        switch node.content {
        case .scalar(let text, _): return text
        case .null: fail("has no value", expected: expected)
        case .sequence, .mapping: fail("is \(node.content.name)", expected: expected)
        }
        return nil
    }

    /// The result of parsing the text. If the parser returns `nil`, that is an error.
    func parsed<Value>(
        expected: String, meant: (String) -> String? = { _ in nil }, _ parse: (String) -> Value?
    ) -> Value? {
        guard let text = text(expected: expected) else { return nil }
        guard let value = parse(text) else {
            let hint =
                node.written == nil ? meant(text).map { " (did you mean \($0)?)" } ?? "" : ""
            fail("\(quoted(text)) is not valid\(hint)", expected: expected)
            return nil
        }
        return value
    }

    /// A whole number in decimal digits.
    func integer(in range: ClosedRange<Int>) -> Int? {
        let expected = "a whole number from \(range.lowerBound) to \(range.upperBound)"
        return within(range, expected: expected, shown: \.description) { text in
            text.utf8.allSatisfy { UInt8(ascii: "0")...UInt8(ascii: "9") ~= $0 } ? Int(text) : nil
        }
    }

    /// A size in bytes: `4096`, `512KB`, `64MiB`.
    func bytes(in range: ClosedRange<Int>) -> Int? {
        let expected = """
            a size from \(Quantity.text(bytes: range.lowerBound)) to \
            \(Quantity.text(bytes: range.upperBound)), in bytes or with KB, MB, GB, TB, KiB, \
            MiB, GiB or TiB
            """
        return within(
            range, expected: expected, meant: Quantity.meantBytes, shown: Quantity.text(bytes:),
            Quantity.bytes)
    }

    /// A duration: `170ms`, `5s`, `1m`, `24h`, `2d`.
    func milliseconds(in range: ClosedRange<Int64>) -> Int64? {
        let expected = """
            a duration from \(Quantity.text(milliseconds: range.lowerBound)) to \
            \(Quantity.text(milliseconds: range.upperBound)), with ms, s, m, h or d
            """
        return within(
            range, expected: expected, meant: Quantity.meantDuration,
            shown: Quantity.text(milliseconds:), Quantity.milliseconds)
    }

    /// A duration of whole seconds.
    func seconds(in range: ClosedRange<Int64>) -> Int64? {
        let milliseconds = range.lowerBound * 1_000...range.upperBound * 1_000
        guard let value = self.milliseconds(in: milliseconds) else { return nil }
        guard value % 1_000 == 0 else {
            fail(
                "\(Quantity.text(milliseconds: value)) is not a whole number of seconds",
                expected: "a duration in s, m, h or d")
            return nil
        }
        return value / 1_000
    }

    private func within<Value>(
        _ range: ClosedRange<Value>, expected: String, meant: (String) -> String? = { _ in nil },
        shown: (Value) -> String, _ parse: (String) -> Value?
    ) -> Value? {
        guard let value = parsed(expected: expected, meant: meant, parse) else { return nil }
        guard range.contains(value) else {
            let value = node.written.map { quoted($0.text) } ?? shown(value)
            fail("\(value) is out of range", expected: expected)
            return nil
        }
        return value
    }

    /// A boolean: `true` or `false`, without quotes unless it comes from a variable, which needs
    /// them within braces and brackets.
    func boolean() -> Bool? {
        let expected = "true or false"
        guard let text = text(expected: expected) else { return nil }
        if case .scalar(_, let isPlain) = node.content, isPlain || node.written != nil {
            switch text {
            case "true", "True", "TRUE": return true
            case "false", "False", "FALSE": return false
            default: break
            }
        }
        fail("\(quoted(text)) is not a boolean", expected: expected)
        return nil
    }

    /// One of the words of a type.
    func choice<Value: RawRepresentable & CaseIterable>(
        _ type: Value.Type = Value.self
    ) -> Value? where Value.RawValue == String {
        choice(of: Array(Value.allCases))
    }

    /// One of the given words of a type.
    func choice<Value: RawRepresentable>(
        of values: [Value]
    ) -> Value? where Value.RawValue == String {
        let words = values.map(\.rawValue).joined(separator: ", ")
        return parsed(expected: "one of \(words)") { text in
            values.first { $0.rawValue == text }
        }
    }

    /// The values of a list. An empty key returns `nil` without an error.
    func list(of what: String) -> [Field]? {
        switch node.content {
        case .sequence(let nodes):
            return nodes.enumerated().map { index, node in
                Field(node: node, path: "\(path)[\(index)]", validation: validation)
            }
        case .null: return nil
        case .scalar, .mapping:
            fail("is \(node.content.name)", expected: "a list of \(what)")
            return nil
        }
    }

    /// The elements of a list, or `nil`, without an error, if the value is not a list.
    var elements: [Field]? {
        guard case .sequence(let nodes) = node.content else { return nil }
        return nodes.enumerated().map { index, node in
            Field(node: node, path: "\(path)[\(index)]", validation: validation)
        }
    }

    /// The absolute path of a file or folder.
    func filePath() -> String? {
        parsed(expected: "a path (`~` requires HOME to be set)") { text in
            guard !text.isEmpty, !text.utf8.contains(0) else { return nil }
            guard let path = validation.path(text, writtenIn: node.origin) else { return nil }
            validation.note(path, of: self)
            return path
        }
    }

    /// A name for logs and metric labels.
    func name() -> String? {
        parsed(expected: "1 to \(maximumNameBytes) letters, digits, `.`, `_` and `-`") {
            isName($0) ? $0 : nil
        }
    }

    /// The content of a file with an absolute path.
    /// - Parameter isKey: Whether to warn if users other than the owner and group can read it.
    ///   Systems use groups to let services share the keys of their certificates.
    func contents(ofFile path: String, isKey: Bool = false) -> [UInt8]? {
        validation.note(path)
        do {
            guard isKey else { return try ConfigurationFiles.read(path) }
            let (content, exposure) = try ConfigurationFiles.readSecret(path, isForGroup: true)
            if let exposure { warn("\(quoted(path: path)) \(exposure)") }
            return content
        } catch {
            fail("\(quoted(path: path)) \(error.text)", expected: "a readable file")
            return nil
        }
    }

    /// The value of a key of a mapping, or `nil` if the key is missing.
    func key(_ name: String) -> Field? {
        node[name].map {
            Field(node: $0, path: Section.path(path, name), validation: validation)
        }
    }

    /// The value as a mapping of known keys. An empty key returns `nil` without an error.
    /// - Parameters:
    ///   - keys: The supported keys.
    ///   - later: The keys that are known but not yet supported.
    func section(keys: [String], later: [String] = []) -> Section? {
        switch node.content {
        case .mapping(let entries):
            return Section(self, entries: entries, keys: keys, later: later)
        case .null: return nil
        case .scalar, .sequence:
            fail(
                "is \(node.content.name)",
                expected: "a mapping with \((keys).joined(separator: ", "))")
            return nil
        }
    }
}
