import HTTPCore
import Testing

@testable import Transformation

/// The bytes of a head: lines with CRLF, and the empty line. Characters up to U+00FF are one byte
/// each, so that obs-text can be written.
func headBytes(_ lines: [String]) -> [UInt8] {
    (lines.joined(separator: "\r\n") + "\r\n\r\n").unicodeScalars.map {
        UInt8(truncatingIfNeeded: $0.value)
    }
}

/// The lines of a head, which has to end with its empty line.
func headLines(_ bytes: [UInt8]) throws -> [String] {
    let text = String(String.UnicodeScalarView(bytes.map { Unicode.Scalar($0) }))
    try #require(text.hasSuffix("\r\n\r\n"))
    var lines: [String] = []
    var line = ""
    for character in text.unicodeScalars.dropLast(4) {
        if character == "\n" {
            lines.append(line)
            line = ""
        } else if character != "\r" {
            line.unicodeScalars.append(character)
        }
    }
    return lines + [line]
}

/// Limits that no test reaches.
let wide = HeadLimits(headBytes: 1 << 20, fields: 4096, targetBytes: 1 << 19)

/// Gives a parsed request to `body`.
func withRequest<Value>(
    _ bytes: [UInt8], _ body: (borrowing RequestHead, Span<UInt8>) throws -> Value
) throws -> Value {
    var parser = RequestHeadParser(limits: wide)
    var head = RequestHead()
    let progress = try parser.parse(bytes.span, into: &head)
    try #require(progress == .complete(headBytes: bytes.count))
    return try body(head, bytes.span)
}

/// Gives a parsed response to `body`.
func withResponse<Value>(
    _ bytes: [UInt8], to method: Method = .get,
    _ body: (borrowing ResponseHead, Span<UInt8>) throws -> Value
) throws -> Value {
    var parser = ResponseHeadParser(limits: wide)
    var head = ResponseHead()
    let progress = try parser.parse(
        bytes.span, answering: ResponseContext(method: method), into: &head)
    try #require(progress == .complete(headBytes: bytes.count))
    return try body(head, bytes.span)
}

/// The field lines of a request that are forwarded to the server.
func forwarded(_ bytes: [UInt8]) throws -> [String] {
    try withRequest(bytes) { head, span in
        let memory = UnsafeMutableRawBufferPointer.allocate(
            byteCount: bytes.count + 8, alignment: 8)
        defer { memory.deallocate() }
        var writer = HeadWriter(memory)
        writer.appendForwardedFields(head.fields, of: span)
        writer.append("\r\n")
        let written = Array(memory.prefix(writer.count))
        return written.count == 2
            ? [] : try headLines([0x0D, 0x0A] + written).dropFirst().map(\.self)
    }
}

/// Pseudorandom numbers from a seed (SplitMix64).
struct SplitMix: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9E37_79B9_7F4A_7C15
        var mixed = (state ^ state >> 30) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ mixed >> 27) &* 0x94D0_49BB_1331_11EB
        return mixed ^ mixed >> 31
    }
}
