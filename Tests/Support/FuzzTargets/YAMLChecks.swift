import Gateway

extension FuzzTarget {
    func checkYAML(_ bytes: [UInt8]) throws(FuzzCheckError) -> Bool {
        let node: ConfigNode
        do throws(ConfigurationError) {
            node = try YAMLDocument.parse(bytes, name: "f")
        } catch {
            guard !error.problem.isEmpty, !error.description.utf8.contains(0x0A) else {
                throw FuzzCheckError("an error of no line or of several: \(error)")
            }
            return false
        }
        var measure = Measure()
        measure.add(node, depth: 0)
        guard measure.values <= YAMLDocument.maximumNodes,
            measure.depth <= YAMLDocument.maximumDepth
        else { throw FuzzCheckError("\(measure.values) values, \(measure.depth) levels were read") }
        // Each line but the last ends with a byte at least; what ends with the text may be said to
        // stand on a line after it.
        guard measure.lines.allSatisfy((1...bytes.count + 2).contains) else {
            throw FuzzCheckError("a line that is not in the text: \(measure.lines)")
        }
        // An alias may repeat a long text very often.
        guard measure.writtenBytes <= YAMLDocument.maximumBytes else { return true }
        let first = written(node)
        let again: ConfigNode
        do throws(ConfigurationError) {
            again = try YAMLDocument.parse(Array(first.utf8), name: "f")
        } catch {
            throw FuzzCheckError("what was written cannot be read: \(error)")
        }
        guard written(again) == first else { throw FuzzCheckError("other values after writing") }
        return true
    }

    private struct Measure {
        var values = 0
        var depth = 0
        var lines: Set<Int> = []
        /// At most, if the values are written.
        var writtenBytes = 0

        mutating func add(_ node: ConfigNode, depth level: Int) {
            values += 1
            writtenBytes += 4
            depth = max(depth, level)
            if let line = node.origin.line { lines.insert(line) }
            switch node.content {
            case .null: break
            case .scalar(let text, _): writtenBytes += 10 * text.utf8.count
            case .sequence(let elements): for element in elements { add(element, depth: level + 1) }
            case .mapping(let entries):
                for entry in entries {
                    writtenBytes += 7 + 10 * entry.key.utf8.count
                    if let line = entry.keyOrigin.line { lines.insert(line) }
                    add(entry.value, depth: level + 1)
                }
            }
        }
    }

    /// In flow style, all on one line. Keys are marked as such (`?`): only those may be long.
    private func written(_ node: ConfigNode) -> String {
        switch node.content {
        case .null: "~"
        case .scalar(let text, _): quoted(text)
        case .sequence(let values): "[\(values.map(written).joined(separator: ", "))]"
        case .mapping(let entries):
            "{"
                + entries.map { "? \(quoted($0.key)) : \(written($0.value))" }
                .joined(separator: ", ") + "}"
        }
    }

    private func quoted(_ text: String) -> String {
        var quoted = "\""
        for scalar in text.unicodeScalars {
            switch scalar {
            case "a"..."z", "A"..."Z", "0"..."9": quoted.unicodeScalars.append(scalar)
            default:
                let digits = String(scalar.value, radix: 16)
                quoted += "\\U" + String(repeating: "0", count: 8 - digits.count) + digits
            }
        }
        return quoted + "\""
    }
}
