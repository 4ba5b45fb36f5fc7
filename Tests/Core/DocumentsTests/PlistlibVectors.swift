import Foundation

@testable import Documents

/// What Python's plistlib wrote (3.11), and the value.
enum PlistlibVectors {
    static let xml = bytes(
        "PD94bWwgdmVyc2lvbj0iMS4wIiBlbmNvZGluZz0iVVRGLTgiPz4KPCFET0NUWVBFIHBsaXN0IFBVQkxJ"
            + "QyAiLS8vQXBwbGUvL0RURCBQTElTVCAxLjAvL0VOIiAiaHR0cDovL3d3dy5hcHBsZS5jb20vRFREcy9Q"
            + "cm9wZXJ0eUxpc3QtMS4wLmR0ZCI+CjxwbGlzdCB2ZXJzaW9uPSIxLjAiPgo8ZGljdD4KCTxrZXk+ZGlj"
            + "dDwva2V5PgoJPGRpY3QvPgoJPGtleT5hcnJheTwva2V5PgoJPGFycmF5Lz4KCTxrZXk+czwva2V5PgoJ"
            + "PHN0cmluZz5hJmx0OyZhbXA7Jmd0O8Of5ryi8J+YgDwvc3RyaW5nPgoJPGtleT5lPC9rZXk+Cgk8c3Ry"
            + "aW5nPjwvc3RyaW5nPgoJPGtleT50PC9rZXk+Cgk8dHJ1ZS8+Cgk8a2V5PmY8L2tleT4KCTxmYWxzZS8+"
            + "Cgk8a2V5Pmk8L2tleT4KCTxhcnJheT4KCQk8aW50ZWdlcj4wPC9pbnRlZ2VyPgoJCTxpbnRlZ2VyPjE8"
            + "L2ludGVnZXI+CgkJPGludGVnZXI+LTE8L2ludGVnZXI+CgkJPGludGVnZXI+MTI3PC9pbnRlZ2VyPgoJ"
            + "CTxpbnRlZ2VyPjEyODwvaW50ZWdlcj4KCQk8aW50ZWdlcj4yNTU8L2ludGVnZXI+CgkJPGludGVnZXI+"
            + "MjU2PC9pbnRlZ2VyPgoJCTxpbnRlZ2VyPjY1NTM1PC9pbnRlZ2VyPgoJCTxpbnRlZ2VyPjY1NTM2PC9p"
            + "bnRlZ2VyPgoJCTxpbnRlZ2VyPjIxNDc0ODM2NDg8L2ludGVnZXI+CgkJPGludGVnZXI+NDI5NDk2NzI5"
            + "NTwvaW50ZWdlcj4KCQk8aW50ZWdlcj40Mjk0OTY3Mjk2PC9pbnRlZ2VyPgoJCTxpbnRlZ2VyPjkyMjMz"
            + "NzIwMzY4NTQ3NzU4MDc8L2ludGVnZXI+CgkJPGludGVnZXI+OTIyMzM3MjAzNjg1NDc3NTgwODwvaW50"
            + "ZWdlcj4KCQk8aW50ZWdlcj4xODQ0Njc0NDA3MzcwOTU1MTYxNTwvaW50ZWdlcj4KCQk8aW50ZWdlcj4t"
            + "OTIyMzM3MjAzNjg1NDc3NTgwODwvaW50ZWdlcj4KCTwvYXJyYXk+Cgk8a2V5PnI8L2tleT4KCTxhcnJh"
            + "eT4KCQk8cmVhbD4wLjA8L3JlYWw+CgkJPHJlYWw+MS41PC9yZWFsPgoJCTxyZWFsPi0yLjI1PC9yZWFs"
            + "PgoJCTxyZWFsPjFlKzMwMDwvcmVhbD4KCQk8cmVhbD41ZS0zMjQ8L3JlYWw+CgkJPHJlYWw+MWUrMTY8"
            + "L3JlYWw+CgkJPHJlYWw+MC4xPC9yZWFsPgoJPC9hcnJheT4KCTxrZXk+ZDwva2V5PgoJPGRhdGU+MjAy"
            + "Ny0wNi0wMVQxMjozMDo1OVo8L2RhdGU+Cgk8a2V5Pm88L2tleT4KCTxkYXRlPjE5NjktMDctMjBUMjA6"
            + "MTc6NDBaPC9kYXRlPgoJPGtleT5iPC9rZXk+Cgk8ZGF0YT4KCUFBRUNBd1FGQmdjSUNRb0xEQTBPRHhB"
            + "UkVoTVVGUllYR0JrYUd4d2RIaDhnSVNJakpDVW1KeWdwS2lzc0xTNHZNREV5CglNelExTmpjNE9UbzcK"
            + "CTwvZGF0YT4KCTxrZXk+bjwva2V5PgoJPGRpY3Q+CgkJPGtleT54PC9rZXk+CgkJPGFycmF5PgoJCQk8"
            + "ZGljdD4KCQkJCTxrZXk+eTwva2V5PgoJCQkJPGFycmF5PgoJCQkJCTxzdHJpbmc+YSZsdDsmYW1wOyZn"
            + "dDvDn+a8ovCfmIA8L3N0cmluZz4KCQkJCQk8aW50ZWdlcj4xPC9pbnRlZ2VyPgoJCQkJPC9hcnJheT4K"
            + "CQkJPC9kaWN0PgoJCTwvYXJyYXk+Cgk8L2RpY3Q+Cgk8a2V5Pmxvbmc8L2tleT4KCTxzdHJpbmc+eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4PC9z"
            + "dHJpbmc+CjwvZGljdD4KPC9wbGlzdD4K")
    static let binary = bytes(
        "YnBsaXN0MDDdAQIDBAUGBwgJCgsMDQ4PEBESExQlLS4vMDZUZGljdFVhcnJheVFzUWVRdFFmUWlRclFk"
            + "UW9RYlFuVGxvbmfQoGgAYQA8ACYAPgDfbyLYPd4AUAkIrxAQFRYXGBkaGxwdHh8gISIjJBAAEAET////"
            + "//////8QfxCAEP8RAQAR//8SAAEAABKAAAAAEv////8TAAAAAQAAAAATf/////////8UAAAAAAAAAACA"
            + "AAAAAAAAABQAAAAAAAAAAP//////////E4AAAAAAAAAApyYnKCkqKywjAAAAAAAAAAAjP/gAAAAAAAAj"
            + "wAIAAAAAAAAjfjfkPIgAdZwjAAAAAAAAAAEjQ0HDeTfggAAjP7mZmZmZmZozQcjXc0GAAAAzwc2UGU4A"
            + "AABPEDwAAQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAhIiMkJSYnKCkqKywtLi8wMTIzNDU2"
            + "Nzg5OjvRMTJReKEz0TQ1UXmiEBZfEQEseHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4"
            + "eHh4eHh4eHh4eHh4eHh4eHh4eHh4eHh4AAgAIwAoAC4AMAAyADQANgA4ADoAPAA+AEAAQgBHAEgASQBa"
            + "AFsAXABdAHAAcgB0AH0AfwCBAIMAhgCJAI4AkwCYAKEAqgC7AMwA1QDdAOYA7wD4AQEBCgETARwBJQEu"
            + "AW0BcAFyAXQBdwF5AXwAAAAAAAACAQAAAAAAAAA3AAAAAAAAAAAAAAAAAAACrA==")
    /// `[UID(5), UID(70000)]`
    static let uids = bytes(
        "YnBsaXN0MDCiAQKABYMAARFwCAsNAAAAAAAAAQEAAAAAAAAAAwAAAAAAAAAAAAAAAAAAABI=")

    static let integers: [DocumentNumber] =
        [
            0, 1, -1, 127, 128, 255, 256, 65535, 65536, 2_147_483_648, 4_294_967_295, 4_294_967_296,
            9_223_372_036_854_775_807,
        ].map { DocumentNumber($0) } + [
            DocumentNumber(UInt64(1) << 63), DocumentNumber(UInt64.max), DocumentNumber(Int64.min),
        ]
    private static let reals = [0.0, 1.5, -2.25, 1e300, Double.leastNonzeroMagnitude, 1e16, 0.1]

    static let value: DocumentValue = [
        "dict": .dictionary([:]), "array": .array([]), "s": .string("a<&>ß漢😀"), "e": .string(""),
        "t": .boolean(true), "f": .boolean(false), "i": .array(integers.map { .number($0) }),
        "r": .array(reals.map { .number(DocumentNumber(verified: $0.description)) }),
        "d": .date(1_811_853_059), "o": .date(-14_182_940), "b": .data(Array(0..<60)),
        "n": ["x": .array([["y": .array([.string("a<&>ß漢😀"), .number(1)])]])],
        "long": .string(String(repeating: "x", count: 300)),
    ]

    private static func bytes(_ base64: String) -> [UInt8] {
        Data(base64Encoded: base64).map(Array.init) ?? []
    }
}

extension DocumentValue: ExpressibleByDictionaryLiteral {
    public init(dictionaryLiteral elements: (String, DocumentValue)...) {
        var dictionary = DocumentDictionary()
        for (key, value) in elements { dictionary[key] = value }
        self = .dictionary(dictionary)
    }
}
