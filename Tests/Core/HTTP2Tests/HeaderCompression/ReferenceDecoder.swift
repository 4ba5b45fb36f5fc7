@testable import HTTP2

/// A decoder as RFC 7541 describes it, with arrays: slow, and easy to compare with the text.
struct ReferenceDecoder {
    private(set) var table: [DecodedField] = []
    private(set) var limit = 4096
    var largestLimit = 4096

    var size: Int { table.reduce(0) { $0 + $1.name.count + $1.value.count + 32 } }

    mutating func decode(_ block: [UInt8]) throws(HeaderCompressionError) -> [DecodedField] {
        var rest = block[...]
        var fields: [DecodedField] = []
        while let first = rest.first {
            if first & 0x80 != 0 {
                fields.append(try field(try integer(&rest, bits: 7)))
            } else if first & 0xC0 == 0x40 {
                let field = try literal(&rest, bits: 6)
                fields.append(field)
                table.insert(field, at: 0)
                evict()
            } else if first & 0xE0 == 0x20 {
                guard fields.isEmpty else { throw .lateTableSize }
                let size = try integer(&rest, bits: 5)
                guard size <= largestLimit else { throw .tableSizeTooLarge }
                limit = size
                evict()
            } else {
                var field = try literal(&rest, bits: 4)
                field.isSensitive = first & 0x10 != 0
                fields.append(field)
            }
        }
        return fields
    }

    private mutating func evict() { while size > limit { table.removeLast() } }

    private func field(_ index: Int) throws(HeaderCompressionError) -> DecodedField {
        guard index > 0 else { throw .indexZero }
        if index <= 61 { return staticFields[index - 1] }
        guard index - 62 < table.count else { throw .indexOutOfRange }
        return table[index - 62]
    }

    private func literal(
        _ rest: inout ArraySlice<UInt8>, bits: Int
    ) throws(HeaderCompressionError) -> DecodedField {
        let index = try integer(&rest, bits: bits)
        let name = index > 0 ? try field(index).name : nil
        // All lengths come before what the strings contain.
        let codedName = name == nil ? try string(&rest) : nil
        let codedValue = try string(&rest)
        let known = name ?? []
        return DecodedField(
            name: try codedName.map { (coded) throws(HeaderCompressionError) in
                try Self.decoded(coded)
            } ?? known, value: try Self.decoded(codedValue))
    }

    private static func decoded(
        _ string: (bytes: [UInt8], isCoded: Bool)
    ) throws(HeaderCompressionError) -> [UInt8] {
        string.isCoded ? try decodedSlowly(string.bytes) : string.bytes
    }

    private func string(
        _ rest: inout ArraySlice<UInt8>
    ) throws(HeaderCompressionError) -> (bytes: [UInt8], isCoded: Bool) {
        guard let first = rest.first else { throw .truncatedBlock }
        let length = try integer(&rest, bits: 7)
        guard length <= rest.count else { throw .truncatedBlock }
        defer { rest = rest.dropFirst(length) }
        return (Array(rest.prefix(length)), first & 0x80 != 0)
    }

    private func integer(
        _ rest: inout ArraySlice<UInt8>, bits: Int
    ) throws(HeaderCompressionError) -> Int {
        guard let first = rest.popFirst() else { throw .truncatedBlock }
        let mask = 1 << bits - 1
        var value = Int(first) & mask
        guard value == mask else { return value }
        for shift in [0, 7, 14, 21] {
            guard let byte = rest.popFirst() else { throw .truncatedBlock }
            value += Int(byte & 0x7F) << shift
            if byte & 0x80 == 0 { return value }
        }
        throw rest.isEmpty ? .truncatedBlock : .integerTooLarge
    }
}

/// Appendix A of RFC 7541.
let staticFields: [DecodedField] = """
    :authority
    :method GET
    :method POST
    :path /
    :path /index.html
    :scheme http
    :scheme https
    :status 200
    :status 204
    :status 206
    :status 304
    :status 400
    :status 404
    :status 500
    accept-charset
    accept-encoding gzip, deflate
    accept-language
    accept-ranges
    accept
    access-control-allow-origin
    age
    allow
    authorization
    cache-control
    content-disposition
    content-encoding
    content-language
    content-length
    content-location
    content-range
    content-type
    cookie
    date
    etag
    expect
    expires
    from
    host
    if-match
    if-modified-since
    if-none-match
    if-range
    if-unmodified-since
    last-modified
    link
    location
    max-forwards
    proxy-authenticate
    proxy-authorization
    range
    referer
    refresh
    retry-after
    server
    set-cookie
    strict-transport-security
    transfer-encoding
    user-agent
    vary
    via
    www-authenticate
    """.split(separator: "\n").map { line in
        let parts = line.split(separator: " ", maxSplits: 1)
        return DecodedField(String(parts[0]), parts.count > 1 ? String(parts[1]) : "")
    }
