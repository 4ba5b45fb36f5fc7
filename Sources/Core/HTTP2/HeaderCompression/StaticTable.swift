/// The static table (RFC 7541 Appendix A): 61 fields that every decoder knows.
enum StaticTable {
    /// The number of fields; their indices begin at 1.
    static let count = 61

    /// All fields as lines, in order, followed by bytes that may be read but mean nothing.
    private static let lines: StaticString = """
        :authority: \r
        :method: GET\r
        :method: POST\r
        :path: /\r
        :path: /index.html\r
        :scheme: http\r
        :scheme: https\r
        :status: 200\r
        :status: 204\r
        :status: 206\r
        :status: 304\r
        :status: 400\r
        :status: 404\r
        :status: 500\r
        accept-charset: \r
        accept-encoding: gzip, deflate\r
        accept-language: \r
        accept-ranges: \r
        accept: \r
        access-control-allow-origin: \r
        age: \r
        allow: \r
        authorization: \r
        cache-control: \r
        content-disposition: \r
        content-encoding: \r
        content-language: \r
        content-length: \r
        content-location: \r
        content-range: \r
        content-type: \r
        cookie: \r
        date: \r
        etag: \r
        expect: \r
        expires: \r
        from: \r
        host: \r
        if-match: \r
        if-modified-since: \r
        if-none-match: \r
        if-range: \r
        if-unmodified-since: \r
        last-modified: \r
        link: \r
        location: \r
        max-forwards: \r
        proxy-authenticate: \r
        proxy-authorization: \r
        range: \r
        referer: \r
        refresh: \r
        retry-after: \r
        server: \r
        set-cookie: \r
        strict-transport-security: \r
        transfer-encoding: \r
        user-agent: \r
        vary: \r
        via: \r
        www-authenticate: \r
        ........................................
        """

    /// Where the line of each index begins, and where the last one ends. Index 0 is none.
    private static let starts: InlineArray<63, UInt16> = [
        0,
        0, 14, 28, 43, 53, 73, 88, 104, 118, 132, 146, 160, 174, 188, 202, 220, 252, 271,
        288, 298, 329, 336, 345, 362, 379, 402, 422, 442, 460, 480, 497, 513, 523, 531,
        539, 549, 560, 568, 576, 588, 609, 626, 638, 661, 678, 686, 698, 714, 736, 759,
        768, 779, 790, 805, 815, 829, 858, 879, 893, 901, 908, 928,
    ]

    /// The length of each index's name.
    private static let nameCounts: InlineArray<62, UInt8> = [
        0,
        10, 7, 7, 5, 5, 7, 7, 7, 7, 7, 7, 7, 7, 7, 14, 15, 15, 13, 6, 27, 3, 5, 13, 13,
        19, 16, 16, 14, 16, 13, 12, 6, 4, 4, 6, 7, 4, 4, 8, 17, 13, 8, 19, 13, 4, 8, 12,
        18, 19, 5, 7, 7, 11, 6, 10, 25, 17, 10, 4, 3, 16,
    ]

    /// The field at an index in 1...61.
    @inline(__always)
    static func line(_ index: Int) -> HeaderLine {
        let start = Int(starts[unchecked: index])
        let name = Int(nameCounts[unchecked: index])
        return HeaderLine(
            start: UnsafeRawPointer(lines.utf8Start) + start, nameCount: name,
            valueCount: Int(starts[unchecked: index &+ 1]) &- start &- name &- 4,
            traits: FieldTraits(role: role(index), fault: fault(index)), isSensitive: false)
    }

    /// What the name at an index means.
    @inline(__always)
    static func role(_ index: Int) -> FieldRole {
        switch index {
        case 1: .authority
        case 2, 3: .method
        case 4, 5: .path
        case 6, 7: .scheme
        case 8...14: .status
        case 28: .contentLength
        case 32: .cookie
        case 38: .host
        case 57: .connection
        default: .regular
        }
    }

    /// What is wrong with the value at an index: some fields must have one.
    @inline(__always)
    private static func fault(_ index: Int) -> MessageError? {
        switch index {
        case 1, 38: .emptyAuthority
        case 28: .malformedContentLength
        default: nil
        }
    }
}
