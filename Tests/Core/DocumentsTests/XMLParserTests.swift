import Testing

@testable import Documents

/// Records the events, one after another.
private struct Recorder: XMLSink {
    var events: [String] = []

    mutating func start(_ tag: XMLTag) throws(DocumentError) {
        let attributes = (0..<tag.attributeCount).map { index in
            let (name, value) = tag.attribute(index)
            let text = String(decoding: value, as: UTF8.self)
            return " \(String(decoding: name, as: UTF8.self))=\(text)"
        }
        events.append("<\(String(decoding: tag.name, as: UTF8.self))\(attributes.joined())>")
    }

    mutating func text(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        events.append(String(decoding: text, as: UTF8.self))
    }

    mutating func end(_ name: UnsafeRawBufferPointer) throws(DocumentError) {
        events.append("</\(String(decoding: name, as: UTF8.self))>")
    }

    mutating func comment(_ text: UnsafeRawBufferPointer) throws(DocumentError) {
        events.append("!\(String(decoding: text, as: UTF8.self))")
    }

    mutating func instruction(
        _ target: UnsafeRawBufferPointer, _ data: UnsafeRawBufferPointer
    ) throws(DocumentError) {
        events.append("?\(String(decoding: target, as: UTF8.self))")
    }
}

/// The events of a document that is pushed in parts of this many bytes.
private func events(
    _ bytes: [UInt8], part: Int = .max, limits: DocumentLimits = .standard,
    encoding: String? = nil, reportsComments: Bool = false
) throws(DocumentError) -> [String] {
    let parser = XMLPushParser(
        Recorder(), limits: limits, encoding: encoding, reportsComments: reportsComments)
    var rest = bytes[...]
    while !rest.isEmpty {
        try Array(rest.prefix(part)).withBytes { bytes throws(DocumentError) in
            try parser.push(bytes)
        }
        rest = rest.dropFirst(part)
    }
    try parser.finish()
    return parser.sink.events
}

private func utf16(_ text: String) -> [UInt8] {
    [0xFE, 0xFF] + text.utf16.flatMap { [UInt8($0 >> 8), UInt8($0 & 0xFF)] }
}

@Suite("XML in parts")
struct XMLParserTests {
    private let document = """
        <?xml version="1.0"?><!DOCTYPE plist PUBLIC "-//A//B" "http://a.test/a.dtd">
        <p:a x="1 &lt;" p:y='ß'>é<!-- c -->&#x41;<![CDATA[<&]]>
        z<b/><?pi d?>end</p:a>
        """
    private let expected = ["<p:a x=1 < p:y=ß>", "éA<&\nz", "<b>", "</b>", "end", "</p:a>"]

    @Test(arguments: [1, 2, 3, 7, 1000])
    func `has the same events however it is parted`(part: Int) throws {
        #expect(try events(Array(document.utf8), part: part) == expected)
        #expect(try events(utf16(document), part: part) == expected)
    }

    /// Without a byte order mark, and beginning with something other than a tag.
    @Test(arguments: [1, 2, 3, 1000])
    func `is read in UTF-16 however it is parted`(part: Int) throws {
        let little = " <a>é</a>".utf16.flatMap { [UInt8($0 & 0xFF), UInt8($0 >> 8)] }
        #expect(try events(little, part: part) == ["<a>", "é", "</a>"])
    }

    @Test func `reports comments and instructions where that is asked for`() throws {
        let text = "<a>x<!--c-->y<?pi d?></a>"
        #expect(try events(Array(text.utf8)) == ["<a>", "xy", "</a>"])
        #expect(
            try events(Array(text.utf8), reportsComments: true)
                == ["<a>", "x", "!c", "y", "?pi", "</a>"])
    }

    @Test(
        arguments: [
            ("ISO-8859-1", nil, [0xE9]), ("US-ASCII", nil, [0x41]), ("UTF-8", nil, [0xC3, 0xA9]),
            (nil, "iso-8859-1", [0xE9]),
        ] as [(String?, String?, [UInt8])])
    func `is read in the encodings that are known`(
        declared: String?, external: String?, bytes: [UInt8]
    ) throws {
        let head = declared.map { "<?xml version='1.0' encoding='\($0)'?>" } ?? ""
        let found = try events(
            Array((head + "<a>").utf8) + bytes + Array("</a>".utf8), encoding: external)
        #expect(found == ["<a>", bytes == [0x41] ? "A" : "é", "</a>"])
    }

    @Test(
        arguments: [
            ("", .malformed("there is no element"), 1, 1),
            ("<a>\n<b>", .malformed("the element b does not end"), 2, 4),
            ("<a>\n</b>", .malformed("b is closed where a is open"), 2, 3),
            ("<a/><b/>", .malformed("there is content after the end"), 1, 5),
            ("<a b='1' b='2'/>", .duplicateKey("b"), 1, 10),
            ("<a b=1/>", .malformed("not well-formed (invalid token)"), 1, 6),
            ("<a>\u{1}</a>", .malformed("not well-formed (invalid token)"), 1, 4),
            ("<a>&#0;</a>", .malformed("reference to invalid character number"), 1, 4),
            ("<a>\n &x;</a>", .entity("a reference to an entity"), 2, 2),
            (
                "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>",
                .entity("a document type with declarations"), 1, 13
            ),
            (
                "<!DOCTYPE a [<!ELEMENT a ANY>]><a/>",
                .entity("a document type with declarations"), 1, 13
            ),
            (
                "<!DOCTYPE a SYSTEM 'http://a.test/'><a>&x;</a>",
                .entity("a reference to the entity x"), 1, 40
            ),
            (
                "<!DOCTYPE a SYSTEM 'http://a.test/'><a b='&lt;&#65;&x;'/>",
                .entity("a reference to the entity x"), 1, 37
            ),
            ("<?xml version='1.0' encoding='koi8-r'?><a/>", .encoding, 1, 31),
            ("<?xml version='1.0' encoding='utf-16'?><a/>", .encoding, 1, 31),
        ] as [(String, DocumentError.Reason, Int, Int)])
    func `is refused with the reason and the place`(
        text: String, reason: DocumentError.Reason, line: Int, column: Int
    ) {
        for part in [1, 1000] {
            let error = #expect(throws: DocumentError.self) {
                try events(Array(text.utf8), part: part)
            }
            #expect(error?.reason == reason)
            #expect(error?.location?.line == line)
            #expect(error?.location?.column == column || error?.reason == .encoding)
        }
    }

    /// Expat accepts three characters as letters of a name, but not in UTF-8.
    @Test(arguments: ["ª", "µ", "º"])
    func `is refused for a malformed name, whatever its encoding`(letter: Character) {
        let latin = Array("<?xml version='1.0' encoding='ISO-8859-1'?>".utf8)
        for text in ["<\(letter)/>", "<a\(letter)/>", "<a b\(letter)='1'/>", "<a \(letter)='1'/>"] {
            let encodings = [
                Array(text.utf8), utf16(text),
                latin + text.unicodeScalars.map { UInt8($0.value) },
            ]
            for bytes in encodings {
                let error = #expect(throws: DocumentError.self) { try events(bytes) }
                #expect(error?.reason == .malformed("not well-formed (invalid token)"))
            }
        }
    }

    @Test func `is bounded in bytes, depth and values`() throws {
        let text = Array("<a><b c='1' d='2'/></a>".utf8)
        #expect(throws: Never.self) {
            try events(text, limits: .init(bytes: text.count, depth: 2, values: 4))
        }
        for (limits, reason) in [
            (DocumentLimits(bytes: text.count - 1), .tooLarge(maximum: text.count - 1)),
            (DocumentLimits(depth: 1), .tooDeep(maximum: 1)),
            (DocumentLimits(values: 3), .tooManyValues(maximum: 3)),
        ] as [(DocumentLimits, DocumentError.Reason)] {
            let error = #expect(throws: DocumentError.self) {
                try events(text, part: 3, limits: limits)
            }
            #expect(error?.reason == reason)
            #expect(error?.location != nil)
        }
    }

    @Test func `stays refused`() throws {
        let parser = XMLPushParser(Recorder())
        var errors: [DocumentError] = []
        for text in ["</a>", "<a/>"] {
            do {
                try Array(text.utf8).withBytes { b throws(DocumentError) in try parser.push(b) }
            } catch { errors.append(error) }
        }
        do { try parser.finish() } catch { errors.append(error) }
        #expect(errors.count == 3)
        #expect(Set(errors.map(\.description)).count == 1)
    }

    @Test func `reads a long tag in parts without starting again at each`() throws {
        let parser = XMLPushParser(Recorder())
        let part = [UInt8](repeating: UInt8(ascii: "v"), count: 1024)
        let parts =
            [Array("<a b='".utf8)] + Array(repeating: part, count: 1024) + [Array("'/>".utf8)]
        for part in parts {
            try part.withBytes { bytes throws(DocumentError) in try parser.push(bytes) }
        }
        try parser.finish()
        #expect(parser.sink.events.first?.utf8.count == 1024 * 1024 + 6)
        #expect(parser.rounds < 64)
    }
}

@Suite("A tree of XML")
struct XMLDocumentTests {
    @Test func `has attributes and mixed content in their order`() throws {
        let text = "<a z='1' y='2'>t<b/>u<![CDATA[<]]><b>v</b></a>"
        let document = try XMLTree(Array(text.utf8))
        #expect(document.root.attributes == [XMLAttribute("z", "1"), XMLAttribute("y", "2")])
        #expect(
            document.root.content == [
                .text("t"), .element(XMLTree.Element("b")), .text("u<"),
                .element(XMLTree.Element("b", content: [.text("v")])),
            ])
        #expect(document.root.text == "tu<")
        #expect(document.root.children.map(\.line) == [1, 1])
        #expect(document.root.attribute("y") == "2")
        #expect(document.root.attribute("x") == nil)
    }

    @Test func `is written so that it is read as it was`() throws {
        let hard = "&<>\"' \t\n\rß漢😀]]>\u{85}"
        let root = XMLTree.Element(
            "p:é", attributes: [XMLAttribute("x", hard), XMLAttribute("xml:y", "")],
            content: [.text(hard), .element(XMLTree.Element("b")), .text(hard)])
        let bytes = try XMLTree(root: root).write()
        #expect(try XMLTree(bytes) == XMLTree(root: root))
    }

    @Test(
        arguments: [
            (XMLTree.Element("a b"), .unrepresentable("the name \"a b\"")),
            (XMLTree.Element(""), .unrepresentable("the name \"\"")),
            (XMLTree.Element("1"), .unrepresentable("the name \"1\"")),
            (XMLTree.Element("a×"), .unrepresentable("the name \"a×\"")),
            (
                XMLTree.Element("a", content: [.text("\0")]),
                .unrepresentable("the character U+0000")
            ),
            (
                XMLTree.Element("a", attributes: [XMLAttribute("b", "\u{FFFF}")]),
                .unrepresentable("the character U+FFFF")
            ),
            (
                XMLTree.Element("a", attributes: [XMLAttribute("=", "")]),
                .unrepresentable("the name \"=\"")
            ),
            (
                XMLTree.Element("a", attributes: [XMLAttribute("b", ""), XMLAttribute("b", "")]),
                .duplicateKey("b")
            ),
        ] as [(XMLTree.Element, DocumentError.Reason)])
    func `is not written where XML cannot express it`(
        root: XMLTree.Element, reason: DocumentError.Reason
    ) {
        let error = #expect(throws: DocumentError.self) { try XMLTree(root: root).write() }
        #expect(error?.reason == reason)
    }

    @Test func `is bounded when it is written, and in its depth`() throws {
        let error = #expect(throws: DocumentError.self) {
            try XMLTree(root: XMLTree.Element("a", content: [.text("0123456789")]))
                .write(limits: .init(output: 50))
        }
        #expect(error?.reason == .outputTooLarge(maximum: 50))
        let deep = String(repeating: "<a>", count: 129) + String(repeating: "</a>", count: 129)
        let other = #expect(throws: DocumentError.self) {
            try XMLTree(Array(deep.utf8), limits: .init(depth: 10_000))
        }
        #expect(other?.reason == .tooDeep(maximum: 128))
    }
}
