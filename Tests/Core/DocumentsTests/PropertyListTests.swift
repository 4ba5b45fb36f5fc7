import Foundation
import Testing

@testable import Documents

func written<Writer>(
    _ value: DocumentValue, _ writer: Writer, _ finish: (inout Writer) throws -> [UInt8]
) throws -> [UInt8] where Writer: DocumentSink {
    var writer = writer
    try value.replay(into: &writer)
    return try finish(&writer)
}

func propertyList(
    _ value: DocumentValue, _ form: PropertyListForm, limits: DocumentLimits = .standard
) throws -> [UInt8] {
    switch form {
    case .xml: try written(value, XMLPropertyListWriter(limits: limits)) { try $0.finish() }
    case .binary: try written(value, BinaryPropertyListWriter(limits: limits)) { try $0.finish() }
    }
}

private func xml(_ content: String) -> [UInt8] {
    Array("<plist version=\"1.0\">\(content)</plist>".utf8)
}

@Suite("Property lists")
struct PropertyListTests {
    @Test func `of Python's plistlib are read, and XML is written byte for byte as it does`() throws
    {
        #expect(try PropertyListReader.value(of: PlistlibVectors.xml) == PlistlibVectors.value)
        #expect(try PropertyListReader.value(of: PlistlibVectors.binary) == PlistlibVectors.value)
        let text = try propertyList(PlistlibVectors.value, .xml)
        #expect(
            String(decoding: text, as: UTF8.self)
                == String(decoding: PlistlibVectors.xml, as: UTF8.self))
    }

    @Test(arguments: PropertyListForm.allCases)
    func `are read as they were written, by this and by Foundation`(
        form: PropertyListForm
    ) throws {
        let bytes = try propertyList(PlistlibVectors.value, form)
        #expect(try PropertyListReader.value(of: bytes) == PlistlibVectors.value)
        let list = try PropertyListSerialization.propertyList(from: Data(bytes), format: nil)
        let found = try #require(list as? [String: Any])
        #expect(found["s"] as? String == "a<&>ß漢😀")
        #expect(found["b"] as? Data == Data(0..<60))
        #expect((found["d"] as? Date)?.timeIntervalSince1970 == 1_811_853_059)
        #expect((found["i"] as? [NSNumber])?.count == 16)
        #expect(found["t"] as? Bool == true)
    }

    @Test func `have UIDs as dictionaries, and as UIDs again`() throws {
        let value = try PropertyListReader.value(of: PlistlibVectors.uids)
        #expect(value == .array([["CF$UID": .number(5)], ["CF$UID": .number(70000)]]))
        let binary = try propertyList(value, .binary)
        #expect(binary.contains(0x80) && binary.contains(0x83))
        #expect(try PropertyListReader.value(of: binary) == value)
        #expect(try PropertyListReader.value(of: propertyList(value, .xml)) == value)
    }

    @Test(
        arguments: [
            ("<integer> +0x1F </integer>", .number(31)), ("<integer>-007</integer>", .number(-7)),
            ("<integer>-0</integer>", .number(0)),
            ("<real>5</real>", .number(DocumentNumber(verified: "5.0"))),
            ("<real>+.5</real>", .number(DocumentNumber(verified: "0.5"))),
            ("<real>0.10</real>", .number(DocumentNumber(verified: "0.10"))),
            ("<real>1E5</real>", .number(DocumentNumber(verified: "1E5"))),
            ("<string/>", .string("")), ("<string> a&lt;<![CDATA[<]]></string>", .string(" a<<")),
            ("<data> AQ\n I= </data>", .data([1, 2])), ("<data/>", .data([])),
            ("<true></true>", .boolean(true)),
            ("<date>2027-06-01T00:00:00.5+01:00</date>", .date(1_811_804_400.5)),
            ("<date>2027-06-01</date>", .date(1_811_808_000)),
        ] as [(String, DocumentValue)])
    func `in XML are read with all that programs write`(
        content: String, value: DocumentValue
    ) throws {
        #expect(try PropertyListReader.value(of: xml(content)) == value)
    }

    @Test(
        arguments: [
            ("<array>\n<foo/></array>", .malformed("foo is not a property list value")),
            ("<dict><key>a</key></dict>", .malformed("the dictionary has key without a partner")),
            (
                "<dict><string>a</string></dict>",
                .malformed("the dictionary has string without a partner")
            ),
            (
                "<dict><key>a</key><key>b</key></dict>",
                .malformed("the dictionary has key without a partner")
            ),
            ("<dict><key>a</key><true/><key>a</key></dict>", .duplicateKey("a")),
            ("<key>a</key>", .malformed("there is a key outside a dictionary")),
            ("<true/><true/>", .malformed("there is a second value")),
            ("", .malformed("there is no value in the property list")),
            ("x<true/>", .malformed("there is text outside a value")),
            ("<string><true/></string>", .malformed("there is true in a value that must be text")),
            ("<true>x</true>", .malformed("a Boolean contains text")),
            ("<integer>1.0</integer>", .malformed("\"1.0\" is not an integer")),
            ("<integer/>", .malformed("\"\" is not an integer")),
            (
                "<integer>18446744073709551616</integer>",
                .numberOutOfRange("18446744073709551616")
            ),
            (
                "<integer>-9223372036854775809</integer>",
                .numberOutOfRange("-9223372036854775809")
            ),
            ("<real>1e999</real>", .numberOutOfRange("1e999")),
            ("<real>nan</real>", .numberOutOfRange("nan")),
            ("<real>0x1p3</real>", .malformed("\"0x1p3\" is not a number")),
            ("<date>tomorrow</date>", .malformed("\"tomorrow\" is not a date")),
            (
                "<date>2027-13-01T00:00:00Z</date>",
                .malformed("\"2027-13-01T00:00:00Z\" is not a date")
            ),
            ("<data>AQI</data>", .malformed("the data is not base64")),
            ("<data>A*==</data>", .malformed("the data is not base64")),
            ("&x;", .entity("a reference to an entity")),
        ] as [(String, DocumentError.Reason)])
    func `in XML are refused with the reason and the place`(
        content: String, reason: DocumentError.Reason
    ) {
        let error = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(of: xml(content))
        }
        #expect(error?.reason == reason)
        #expect(error?.format == .plist)
        #expect(error?.location?.line == (content.contains("\n") ? 2 : 1))
    }

    @Test(
        arguments: [
            ("{ a = 1; }", "old-style (ASCII) property lists are not supported"),
            ("// c\n( a )", "old-style (ASCII) property lists are not supported"),
            ("hello", "this is neither XML nor a binary property list"),
            ("bplist15", "the version of the binary property list is unknown"),
            ("", "there is no element"),
            ("<html/>", "the root element is html"),
        ])
    func `of other forms are refused with a reason`(text: String, reason: String) {
        let error = #expect(throws: DocumentError.self) {
            try PropertyListReader.value(of: Array(text.utf8))
        }
        #expect(error?.reason == .malformed(reason))
    }

    @Test(arguments: PropertyListForm.allCases)
    func `cannot express null, nor what is out of range, and the error has the path`(
        form: PropertyListForm
    ) {
        let date: DocumentValue = .date(form == .xml ? 1e15 : .infinity)
        for (value, label) in [
            (.null, "unrepresentable"), (date, "unrepresentable"),
            (.number(DocumentNumber(verified: "18446744073709551616")), "number-out-of-range"),
            (.number(DocumentNumber(verified: "1e400")), "number-out-of-range"),
        ] as [(DocumentValue, String)] {
            let error = #expect(throws: DocumentError.self) {
                try propertyList(
                    ["orders": .array([.number(1), ["a": .number(1), "price": value]])], form)
            }
            #expect(error?.reason.label == label)
            #expect(error?.path == "orders[1].price")
        }
    }

    @Test(arguments: PropertyListForm.allCases)
    func `are bounded`(form: PropertyListForm) throws {
        let value: DocumentValue = .array([.array([.string("0123456789"), .number(12345)])])
        let bytes = try propertyList(value, form)
        for (limits, reason) in [
            (DocumentLimits(bytes: bytes.count - 1), .tooLarge(maximum: bytes.count - 1)),
            (DocumentLimits(depth: 1), .tooDeep(maximum: 1)),
            (DocumentLimits(values: 3), .tooManyValues(maximum: 3)),
        ] as [(DocumentLimits, DocumentError.Reason)] {
            let error = #expect(throws: DocumentError.self) {
                try PropertyListReader.value(of: bytes, limits: limits)
            }
            #expect(error?.reason == reason)
        }
        #expect(throws: Never.self) {
            try PropertyListReader.value(
                of: bytes, limits: .init(bytes: bytes.count, depth: 2, values: 4))
        }
        for (limits, reason) in [
            (DocumentLimits(depth: 1), .tooDeep(maximum: 1)),
            (DocumentLimits(output: 30), .outputTooLarge(maximum: 30)),
        ] as [(DocumentLimits, DocumentError.Reason)] {
            let error = #expect(throws: DocumentError.self) {
                try propertyList(value, form, limits: limits)
            }
            #expect(error?.reason == reason)
        }
    }
}
