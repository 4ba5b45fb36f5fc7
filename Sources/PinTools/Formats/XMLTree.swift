import Notation

/// An element of an XML document.
struct XMLElement {
    var name: String
    var attributes: [String: String] = [:]
    var children: [XMLElement] = []
    /// The character data directly inside, that of all places together.
    var text = ""
    /// The line on which it begins, from 1.
    var line: Int

    /// The text without white space around it.
    var trimmedText: String {
        let isSpace: (Character) -> Bool = { $0.isWhitespace }
        let start = text.drop(while: isSpace)
        return String(start.reversed().drop(while: isSpace).reversed())
    }
}

/// Reads as much of XML 1.0 as configuration files use: elements, attributes, comments, CDATA,
/// the predefined entities and references to characters. Nothing else is ever fetched or expanded:
/// a document type with declarations of its own is refused.
struct XMLReader {
    private let bytes: [UInt8]
    private var position = 0
    private var line = 1
    /// Elements within one another.
    private static let maximumDepth = 64

    /// The root element of a document in UTF-8.
    static func parse(_ contents: [UInt8]) throws(PinFormatError) -> XMLElement {
        guard String(validating: contents, as: UTF8.self) != nil else {
            throw PinFormatError("line 1", "the file is not UTF-8", expected: "XML in UTF-8")
        }
        var reader = XMLReader(bytes: contents)
        if reader.take("\u{FEFF}") {}
        try reader.skipMisc()
        let root = try reader.element(depth: 0)
        try reader.skipMisc()
        guard reader.position == contents.count else {
            throw reader.error("there is something after the end", expected: "one root element")
        }
        return root
    }

    private init(bytes: [UInt8]) { self.bytes = bytes }

    private func error(_ problem: String, expected: String) -> PinFormatError {
        PinFormatError("line \(line)", problem, expected: expected)
    }

    private var next: UInt8? { position < bytes.count ? bytes[position] : nil }

    private mutating func advance(_ count: Int) {
        for _ in 0..<count {
            if bytes[position] == UInt8(ascii: "\n") { line += 1 }
            position += 1
        }
    }

    private mutating func take(_ text: String) -> Bool {
        guard bytes[position...].starts(with: text.utf8) else { return false }
        advance(text.utf8.count)
        return true
    }

    private mutating func skipSpace() {
        while let byte = next, byte == 0x20 || (0x09...0x0D).contains(byte) { advance(1) }
    }

    /// Goes behind a text that must come.
    private mutating func skip(past text: String, of what: String) throws(PinFormatError) {
        let start = self
        while position < bytes.count {
            if take(text) { return }
            advance(1)
        }
        throw start.error("\(what) does not end", expected: text)
    }

    /// Declarations, comments and white space outside of the root.
    private mutating func skipMisc() throws(PinFormatError) {
        while true {
            skipSpace()
            if take("<?") {
                try skip(past: "?>", of: "a processing instruction")
            } else if take("<!--") {
                try skip(past: "-->", of: "a comment")
            } else if take("<!DOCTYPE") {
                let start = self
                while let byte = next, byte != UInt8(ascii: ">") {
                    guard byte != UInt8(ascii: "[") else {
                        throw start.error(
                            "the document type has declarations of its own",
                            expected: "a document without entities")
                    }
                    advance(1)
                }
                guard take(">") else {
                    throw start.error("the document type does not end", expected: ">")
                }
            } else {
                return
            }
        }
    }

    private mutating func name() throws(PinFormatError) -> String {
        let start = position
        while let byte = next,
            ASCII.isLetter(byte) || ASCII.isDigit(byte) || byte >= 0x80
                || ":_-.".utf8.contains(byte)
        { advance(1) }
        guard position > start else { throw error("there is no name here", expected: "a name") }
        return String(decoding: bytes[start..<position], as: UTF8.self)
    }

    private mutating func element(depth: Int) throws(PinFormatError) -> XMLElement {
        guard depth < Self.maximumDepth else {
            throw error("elements are nested too deep", expected: "\(Self.maximumDepth) at most")
        }
        guard take("<") else { throw error("there is no element here", expected: "<") }
        let begin = line
        var element = XMLElement(name: try name(), line: begin)
        while true {
            skipSpace()
            if take("/>") { return element }
            if take(">") { break }
            let key = try name()
            skipSpace()
            guard take("=") else { throw error("\(key) has no value", expected: "=") }
            skipSpace()
            let quote: String
            if take("\"") {
                quote = "\""
            } else if take("'") {
                quote = "'"
            } else {
                throw error("the value of \(key) is not quoted", expected: "a quote")
            }
            guard element.attributes[key] == nil else {
                throw error("\(key) is there twice", expected: "each attribute once")
            }
            element.attributes[key] = try characters(until: quote, what: "the value of \(key)")
            advance(1)
        }
        try content(of: &element, depth: depth)
        return element
    }

    private mutating func content(
        of element: inout XMLElement, depth: Int
    ) throws(PinFormatError) {
        while true {
            element.text += try characters(until: "<", what: "the element \(element.name)")
            if take("<!--") {
                try skip(past: "-->", of: "a comment")
            } else if take("<![CDATA[") {
                let start = position
                try skip(past: "]]>", of: "character data")
                element.text += String(decoding: bytes[start..<position - 3], as: UTF8.self)
            } else if take("<?") {
                try skip(past: "?>", of: "a processing instruction")
            } else if take("</") {
                let closing = try name()
                guard closing == element.name else {
                    throw error(
                        "\(closing) is closed where \(element.name) is open (line \(element.line))",
                        expected: "</\(element.name)>")
                }
                skipSpace()
                guard take(">") else { throw error("a tag does not end", expected: ">") }
                return
            } else {
                element.children.append(try self.element(depth: depth + 1))
            }
        }
    }

    /// Text up to a character, which is not taken.
    private mutating func characters(
        until end: String, what: String
    ) throws(PinFormatError) -> String {
        let start = self
        var text: [UInt8] = []
        while let byte = next {
            if end.utf8.first == byte { return String(decoding: text, as: UTF8.self) }
            if byte == UInt8(ascii: "&") {
                text += try reference().utf8
            } else if byte == UInt8(ascii: "<") {
                throw error("there is '<' in \(what)", expected: "&lt;")
            } else {
                text.append(byte)
                advance(1)
            }
        }
        throw start.error("\(what) does not end", expected: end)
    }

    private mutating func reference() throws(PinFormatError) -> String {
        let known = [
            ("&lt;", "<"), ("&gt;", ">"), ("&amp;", "&"), ("&quot;", "\""), ("&apos;", "'"),
        ]
        for (written, meant) in known where take(written) { return meant }
        let begin = self
        let isHexadecimal = take("&#x")
        guard isHexadecimal || take("&#") else {
            throw error("an entity is not known", expected: "&lt; &gt; &amp; &quot; or &apos;")
        }
        let start = position
        while let byte = next, byte != UInt8(ascii: ";"), position - start < 8 { advance(1) }
        let digits = String(decoding: bytes[start..<position], as: UTF8.self)
        guard take(";"), let value = UInt32(digits, radix: isHexadecimal ? 16 : 10),
            let scalar = Unicode.Scalar(value), value > 0
        else { throw begin.error("a reference names no character", expected: "as in &#65;") }
        return String(Character(scalar))
    }
}
