import Testing

@testable import Documents

/// The result of reading a property list.
private typealias Outcome = Result<DocumentValue, DocumentError>

private func read(_ bytes: [UInt8], limits: DocumentLimits = .standard) -> Outcome {
    Outcome { () throws(DocumentError) in
        try PropertyListReader.value(of: bytes, limits: limits)
    }
}

private func readByExpat(_ bytes: [UInt8], limits: DocumentLimits = .standard) -> Outcome {
    Outcome { () throws(DocumentError) in
        try PropertyListReader.valueByExpat(of: bytes, limits: limits)
    }
}

/// Whether a property list is read without expat.
private func isPlain(_ bytes: [UInt8]) -> Bool {
    bytes.withUnsafeBytes { bytes in
        var builder = DocumentBuilder()
        return withUnsafeMutablePointer(to: &builder) { sink in
            var reader = PlainPropertyListReader(bytes, limits: .standard, into: sink)
            return reader.read()
        }
    }
}

private let head = """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" \
    "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    """

private func document(_ content: String) -> [UInt8] {
    Array("\(head)\n<plist version=\"1.0\">\n\(content)\n</plist>\n".utf8)
}

@Suite("Plain property lists")
struct PlainPropertyListTests {
    @Test func `of programs are read without expat, as it reads them`() throws {
        let written = try propertyList(
            ["a<&>]\"'": .array([.string("ä\u{7F}\t漢😀\u{FFFD}\n"), .dictionary([:]), .data([])])],
            .xml)
        for bytes in [PlistlibVectors.xml, written] {
            #expect(isPlain(bytes))
            #expect(try read(bytes).get() == readByExpat(bytes).get())
        }
    }

    @Test(arguments: [
        "<string/>", "<string></string>", "<array/>", "<dict />", "<true />",
        "<string>&lt;&gt;&amp;&quot;&apos;&#65;&#x1f600;&#x1F600;&#13;&#9;</string>",
        "<string>]]&gt; ]]</string>", "<string>a > b ]></string>", "<string>a&#38;b&amp;</string>",
        "<data>\n\tAQID\n\tBAU=\n\t</data>", "<date>2027-06-01T00:00:00Z</date>",
        "<dict><key>&#x41;</key><real>1e5</real><key>b</key><integer> 0x1F </integer></dict>",
    ])
    func `may have what programs write`(content: String) throws {
        let bytes = document(content)
        #expect(isPlain(bytes))
        #expect(try read(bytes).get() == readByExpat(bytes).get())
    }

    @Test(
        arguments: [
            "<string>a<!-- b -->c</string>", "<!-- a --><true/>", "<string><![CDATA[<]]></string>",
            "<true/>\r", "<string>a\r\nb</string>", "<string a=\"b\">c</string>", "<?a b?><true/>",
            "<true/></plist><!-- a -->", "<string\n>a</string\n>", "<true  />",
            // Errors.
            "<string>]]></string>", "<string>&x;</string>", "<string>&#0;</string>",
            "<string>&#xD800;</string>", "<string>&#xFFFE;</string>", "<string>&#x110000;</string>",
            "<string>&#+65;</string>", "<string>&#;</string>", "<string>&#65</string>",
            "<string>&amp</string>", "<string>a & b</string>", "<string>a</key>", "<array></dict>",
            "<dict></array>", "<array>", "</array>", "<>", "</>", "<string", "<string>a", "x",
            "<string>\u{FFFE}</string>", "<string>\u{FFFF}</string>", "<string>\u{B}</string>",
            "<string>a\u{0}</string>", "<\0true/>", "<\0string></\0string>", "<tru\0/>",
            "<foo/>", "<key>a</key>", "<true/><true/>", "",
            "<dict><key>a</key><true/><key>a</key></dict>", "<integer>1.0</integer>",
            "<array>\n<true/>\n<date>now</date></array>", "<true/></plist><plist>",
            "<data>A*==</data>", "<array><true>x</true></array>", "<plist/>",
        ].map(document)
            + [
                "\u{FEFF}<plist><true/></plist>", "<?xml version='1.0'?><plist><true/></plist>",
                "<plis",
                "\n\(head)<plist><true/></plist>", "\(head)",
                "\(head)\(head)<plist><true/></plist>",
                "<plist version=\"1.1\"><true/></plist>", "<html/>", "<plist/>", "<plist></plist>",
            ].map { Array($0.utf8) }
            + [
                [0xC1, 0x81], [0xE0, 0x81, 0x81], [0xED, 0xA0, 0x80], [0xF0, 0x80, 0x80, 0x80],
                [0xF4, 0x90, 0x80, 0x80], [0xF5, 0x80, 0x80, 0x80], [0x80], [0xC3], [0xE6, 0xBC],
                [0xF0, 0x9F, 0x98, 0x20], [0xEF, 0xBF, 0xBE], [0xEF, 0xBF, 0xBF], [0xFF],
            ].map { Array("<plist><string>".utf8) + $0 + Array("</string></plist>".utf8) })
    func `have nothing else, which expat reads or refuses`(bytes: [UInt8]) {
        #expect(!isPlain(bytes))
        #expect(read(bytes) == readByExpat(bytes))
    }

    @Test func `are a property list to expat wherever their bytes are changed`() throws {
        let pieces = [
            "<", ">", "/", "&", ";", "]]>", "<!--", "-->", "<![CDATA[", "&#x", "&amp;", "\r", "\n",
            "\0", "\u{FFFE}", "é", "<key>", "</key>", "<true/>", "<array>", "</dict>", "<plist>",
            " ",
            "a", "b", "c", "1", "2", "A", ".",
        ].map { Array($0.utf8) }
        let seed = UInt64.random(in: 0 ... .max)
        var random = Seeded(state: seed)
        var plain = 0
        for _ in 0..<200 {
            let bytes = try propertyList(random.value(depth: 3), .xml)
            #expect(isPlain(bytes), "seed \(seed)")
            for _ in 0..<20 {
                var changed = bytes
                for _ in 0..<Int.random(in: 1...2, using: &random) {
                    let start = Int.random(in: 0...changed.count, using: &random)
                    let end = min(changed.count, start + .random(in: 0...2, using: &random))
                    let one = [UInt8.random(in: 0...255, using: &random)]
                    changed.replaceSubrange(
                        start..<end,
                        with: .random(using: &random)
                            ? one : pieces.randomElement(using: &random) ?? [])
                }
                let form = changed.withUnsafeBytes { try? PropertyListReader.form(of: $0) }
                guard form == .xml else { continue }
                let limits = DocumentLimits(depth: 3, values: 200)
                #expect(
                    read(changed, limits: limits) == readByExpat(changed, limits: limits),
                    "seed \(seed)")
                if isPlain(changed) { plain += 1 }
            }
        }
        #expect(plain > 10, "seed \(seed)")
    }

    @Test func `give each event once, and what is refused of them has its place`() throws {
        let bytes = document(
            "<array>\n<string>a</string>\n<date>99999-01-01</date><!-- --></array>")
        for output in 0..<20 {
            var errors: [DocumentError?] = []
            // Expat reads what is not UTF-8.
            for encoding in ["utf-8", "us-ascii"] {
                var writer = JSONWriter(limits: DocumentLimits(output: output))
                errors.append(
                    #expect(throws: DocumentError.self) {
                        try bytes.withBytes { bytes throws(DocumentError) in
                            try PropertyListReader.read(bytes, encoding: encoding, into: &writer)
                        }
                    })
            }
            #expect(errors[0] == errors[1])
            #expect(errors[0]?.location?.line == (errors[0]?.format == .plist ? 6 : nil))
        }
        var writer = JSONWriter()
        try document("<array>\n<true/><string>a</string><!-- --><real>0.5</real></array>").withBytes
        {
            bytes throws(DocumentError) in
            try PropertyListReader.read(bytes, into: &writer)
        }
        #expect(try String(decoding: writer.finish(), as: UTF8.self) == "[true,\"a\",0.5]")
    }
}
