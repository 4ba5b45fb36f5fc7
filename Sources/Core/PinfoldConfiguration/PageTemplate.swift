/// Why a page cannot be used.
package struct PageTemplateError: Error, Equatable {
    /// The line in the file.
    package let line: Int
    package let text: String

    package init(line: Int, text: String) {
        self.line = line
        self.text = text
    }
}

/// A page in HTML in which names in double braces, as in `{{host}}`, stand for values of the
/// request. These are escaped: nothing in them is markup.
package struct PageTemplate<Value>: Sendable, Equatable
where Value: RawRepresentable<String> & CaseIterable & Sendable & Equatable {
    /// The largest page, in bytes.
    package static var maximumBytes: Int { 64 << 10 }

    private enum Part: Sendable, Equatable {
        case text([UInt8])
        case value(Value)
    }

    /// The file that it was read from.
    package let path: String
    private let parts: [Part]

    /// Reads a page.
    package init(path: String, content: [UInt8]) throws(PageTemplateError) {
        self.path = path
        var parts: [Part] = []
        var rest = content[...]
        while let start = rest.firstRange(of: Array("{{".utf8)) {
            let line = content[..<start.lowerBound].count { $0 == UInt8(ascii: "\n") } + 1
            parts.append(.text(Array(rest[..<start.lowerBound])))
            guard let end = rest[start.upperBound...].firstRange(of: Array("}}".utf8)) else {
                throw PageTemplateError(line: line, text: "'{{' is not closed")
            }
            let name = String(decoding: rest[start.upperBound..<end.lowerBound], as: UTF8.self)
            guard let value = Value(rawValue: String(name.filter { $0 != " " })) else {
                let known = Value.allCases.map { "{{\($0.rawValue)}}" }.joined(separator: ", ")
                throw PageTemplateError(
                    line: line, text: "there is no value {{\(name.prefix(32))}}; expected \(known)")
            }
            parts.append(.value(value))
            rest = rest[end.upperBound...]
        }
        parts.append(.text(Array(rest)))
        self.parts = parts
    }

    /// The page with its values.
    package func filled(with values: (Value) -> String) -> [UInt8] {
        var result: [UInt8] = []
        for part in parts {
            switch part {
            case .text(let bytes): result += bytes
            case .value(let value): HTMLText.append(values(value), to: &result)
            }
        }
        return result
    }
}

/// Text within HTML.
package enum HTMLText {
    /// Appends text such that it is text wherever in HTML it is.
    package static func append(_ text: String, to result: inout [UInt8]) {
        for byte in text.utf8 {
            switch byte {
            case UInt8(ascii: "&"), UInt8(ascii: "<"), UInt8(ascii: ">"), UInt8(ascii: "\""),
                UInt8(ascii: "'"), UInt8(ascii: "`"), UInt8(ascii: "="):
                result += "&#\(byte);".utf8
            case 0..<0x20, 0x7F: result.append(UInt8(ascii: " "))
            default: result.append(byte)
            }
        }
    }
}
