import HTTPCore
import Testing

@testable import HTTP2

/// One block of an example, with the size that the table has after it.
struct ExampleBlock {
    var bytes: String
    var fields: [DecodedField]
    var tableSize: Int
}

@Suite("The examples of RFC 7541, Appendix C")
struct SpecificationExamplesTests {
    @Test(arguments: [
        ("400a 6375 7374 6f6d 2d6b 6579 0d63 7573 746f 6d2d 6865 6164 6572", "custom-key", 55),
        ("040c 2f73 616d 706c 652f 7061 7468", ":path", 0),
        ("1008 7061 7373 776f 7264 0673 6563 7265 74", "password", 0),
        ("82", ":method", 0),
    ])
    func `C.2: single fields`(bytes: String, name: String, tableSize: Int) throws {
        let values = [
            "custom-key": "custom-header", ":path": "/sample/path", "password": "secret",
            ":method": "GET",
        ]
        var decoder = HeaderDecoder()
        let value = try #require(values[name])
        let expected = DecodedField(name, value, isSensitive: name == "password")
        #expect(try fields(of: hex(bytes), by: &decoder) == [expected])
        #expect(decoder.tableSize == tableSize)
    }

    static let requestFields = [
        [
            DecodedField(":method", "GET"), DecodedField(":scheme", "http"),
            DecodedField(":path", "/"), DecodedField(":authority", "www.example.com"),
        ],
        [
            DecodedField(":method", "GET"), DecodedField(":scheme", "http"),
            DecodedField(":path", "/"), DecodedField(":authority", "www.example.com"),
            DecodedField("cache-control", "no-cache"),
        ],
        [
            DecodedField(":method", "GET"), DecodedField(":scheme", "https"),
            DecodedField(":path", "/index.html"), DecodedField(":authority", "www.example.com"),
            DecodedField("custom-key", "custom-value"),
        ],
    ]

    @Test(arguments: [
        [
            "8286 8441 0f77 7777 2e65 7861 6d70 6c65 2e63 6f6d",
            "8286 84be 5808 6e6f 2d63 6163 6865",
            "8287 85bf 400a 6375 7374 6f6d 2d6b 6579 0c63 7573 746f 6d2d 7661 6c75 65",
        ],
        [
            "8286 8441 8cf1 e3c2 e5f2 3a6b a0ab 90f4 ff", "8286 84be 5886 a8eb 1064 9cbf",
            "8287 85bf 4088 25a8 49e9 5ba9 7d7f 8925 a849 e95b b8e8 b4bf",
        ],
    ])
    func `C.3 and C.4: requests`(blocks: [String]) throws {
        var decoder = HeaderDecoder()
        var sizes: [Int] = []
        for (block, expected) in zip(blocks, Self.requestFields) {
            #expect(try fields(of: hex(block), by: &decoder) == expected)
            sizes.append(decoder.tableSize)
        }
        #expect(sizes == [57, 110, 164])
    }

    static let date = "Mon, 21 Oct 2013 20:13:21 GMT"
    static let responseFields = [
        [
            DecodedField(":status", "302"), DecodedField("cache-control", "private"),
            DecodedField("date", date), DecodedField("location", "https://www.example.com"),
        ],
        [
            DecodedField(":status", "307"), DecodedField("cache-control", "private"),
            DecodedField("date", date), DecodedField("location", "https://www.example.com"),
        ],
        [
            DecodedField(":status", "200"), DecodedField("cache-control", "private"),
            DecodedField("date", "Mon, 21 Oct 2013 20:13:22 GMT"),
            DecodedField("location", "https://www.example.com"),
            DecodedField("content-encoding", "gzip"),
            DecodedField(
                "set-cookie", "foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1"),
        ],
    ]

    @Test(arguments: [
        [
            """
            4803 3330 3258 0770 7269 7661 7465 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133
            2032 303a 3133 3a32 3120 474d 546e 1768 7474 7073 3a2f 2f77 7777 2e65 7861 6d70
            6c65 2e63 6f6d
            """,
            "4803 3330 37c1 c0bf",
            """
            88c1 611d 4d6f 6e2c 2032 3120 4f63 7420 3230 3133 2032 303a 3133 3a32 3220 474d
            54c0 5a04 677a 6970 7738 666f 6f3d 4153 444a 4b48 514b 425a 584f 5157 454f 5049
            5541 5851 5745 4f49 553b 206d 6178 2d61 6765 3d33 3630 303b 2076 6572 7369 6f6e
            3d31
            """,
        ],
        [
            """
            4882 6402 5885 aec3 771a 4b61 96d0 7abe 9410 54d4 44a8 2005 9504 0b81 66e0 82a6
            2d1b ff6e 919d 29ad 1718 63c7 8f0b 97c8 e9ae 82ae 43d3
            """,
            "4883 640e ffc1 c0bf",
            """
            88c1 6196 d07a be94 1054 d444 a820 0595 040b 8166 e084 a62d 1bff c05a 839b d9ab
            77ad 94e7 821d d7f2 e6c7 b335 dfdf cd5b 3960 d5af 2708 7f36 72c1 ab27 0fb5 291f
            9587 3160 65c0 03ed 4ee5 b106 3d50 07
            """,
        ],
    ])
    func `C.5 and C.6: responses, with a table of 256 bytes`(blocks: [String]) throws {
        var decoder = HeaderDecoder()
        // The examples have the size from SETTINGS; here it begins the first block.
        let resize: [UInt8] = [0x3F, 0xE1, 0x01]
        var sizes: [Int] = []
        for (index, block) in blocks.enumerated() {
            let bytes = (index == 0 ? resize : []) + hex(block)
            #expect(try fields(of: bytes, by: &decoder) == Self.responseFields[index])
            sizes.append(decoder.tableSize)
        }
        #expect(sizes == [222, 222, 215])
    }
}
