import Documents
import Transformation

extension TransformationError {
    /// Creates the error for a violation of a schema.
    init(_ violation: SchemaCheck.Violation, _ nodes: [SchemaNode], _ instance: Instance) {
        let node = nodes[violation.node]
        let asked =
            switch violation.kind {
            case .general: node.general[violation.rule].text
            case .number: node.numbers[violation.rule].text
            case .text: node.texts[violation.rule].text
            case .array: node.arrays[violation.rule].text
            case .object: node.objects[violation.rule].text(violation.name)
            }
        let path = ViolationPath(violation.value, of: instance).text
        // The path and the excerpt come from the content: together they must not exceed an
        // excerpt's maximum.
        let maximum = Self.maximumExcerptBytes - path.utf8.count
        self.init(
            .responseSchemaViolated,
            "the schema requires \(asked), at \(node.location.cut(to: 160))",
            at: "at \(path)",
            excerpt: ViolationExcerpt(violation.value, of: instance, maximum: maximum).bytes)
    }
}

extension String {
    /// The text, truncated if it has more bytes.
    fileprivate func cut(to maximum: Int) -> String {
        guard utf8.count > maximum else { return self }
        var end = utf8.index(startIndex, offsetBy: maximum - 3)
        while UTF8.isContinuation(utf8[end]) { end = utf8.index(before: end) }
        return String(self[..<end]) + "…"
    }
}

/// The position of a value in its content: `$.items[2].name`. Control characters in names become
/// U+FFFD.
private struct ViolationPath {
    private static let maximumBytes = 60

    let text: String

    init(_ target: Int, of instance: Instance) {
        var text = "$"
        var container = 0
        while container != target, text.utf8.count <= Self.maximumBytes {
            var member = container + 1
            var position = 0
            while Int(instance.values[member].end) <= target {
                member = Int(instance.values[member].end)
                position += 1
            }
            if instance.values[container].kind == .array {
                text += "[\(position)]"
            } else {
                let name = instance.name(instance.values[member])
                text += ".\(Self.printable(name.prefix(Self.maximumBytes)))"
            }
            container = member
        }
        self.text = text.cut(to: Self.maximumBytes)
    }

    private static func printable(_ name: Slice<UnsafeRawBufferPointer>) -> String {
        let scalars = String(decoding: name, as: UTF8.self).unicodeScalars.map { scalar in
            scalar.properties.generalCategory == .control ? "\u{FFFD}" : scalar
        }
        return String(String.UnicodeScalarView(scalars))
    }
}

/// A value as JSON without white space, truncated.
private struct ViolationExcerpt {
    private(set) var bytes: [UInt8] = []

    init(_ value: Int, of instance: Instance, maximum: Int) {
        var closings: [(end: Int, bracket: UInt8)] = []
        var index = value
        let end = Int(instance.values[value].end)
        while index <= end, bytes.count < maximum {
            while let last = closings.last, last.end == index {
                bytes.append(last.bracket)
                closings.removeLast()
            }
            guard index < end else { break }
            let current = instance.values[index]
            if index > value { begin(current, of: instance, in: closings.last?.bracket) }
            append(current, of: instance, maximum)
            if current.kind == .array || current.kind == .object {
                let bracket = UInt8(ascii: current.kind == .array ? "]" : "}")
                closings.append((Int(current.end), bracket))
            }
            index += 1
        }
        if bytes.count > maximum {
            var cut = maximum
            while cut > 0, UTF8.isContinuation(bytes[cut]) { cut -= 1 }
            bytes.removeSubrange(cut...)
        }
    }

    private mutating func begin(
        _ value: Instance.Value, of instance: Instance, in bracket: UInt8?
    ) {
        if let last = bytes.last, !"[{".utf8.contains(last) { bytes.append(UInt8(ascii: ",")) }
        guard bracket == UInt8(ascii: "}") else { return }
        append(string: instance.name(value), 200)
        bytes.append(UInt8(ascii: ":"))
    }

    private mutating func append(
        _ value: Instance.Value, of instance: Instance, _ maximum: Int
    ) {
        switch value.kind {
        case .null: bytes += "null".utf8
        case .boolean: bytes += (value.flag ? "true" : "false").utf8
        case .number: bytes += instance.bytes(value).prefix(maximum)
        case .string: append(string: instance.bytes(value), maximum)
        case .array: bytes.append(UInt8(ascii: "["))
        case .object: bytes.append(UInt8(ascii: "{"))
        }
    }

    private mutating func append(string: UnsafeRawBufferPointer, _ maximum: Int) {
        bytes.append(UInt8(ascii: "\""))
        for byte in string.prefix(maximum) {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") {
                bytes += [UInt8(ascii: "\\"), byte]
            } else {
                bytes.append(byte < 0x20 || byte == 0x7F ? UInt8(ascii: "?") : byte)
            }
        }
        if string.count <= maximum { bytes.append(UInt8(ascii: "\"")) }
    }
}
