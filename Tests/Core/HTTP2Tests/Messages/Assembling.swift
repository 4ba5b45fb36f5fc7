import HTTPCore

@testable import HTTP2

/// Fields in order, as a block without tables: literals that are not added.
func block(_ fields: [(String, String)]) -> [UInt8] {
    fields.flatMap { name, value in literal(name) + literal(value, after: []) }
}

private func literal(_ text: String, after start: [UInt8] = [0]) -> [UInt8] {
    let bytes = text.unicodeScalars.map { UInt8(truncatingIfNeeded: $0.value) }
    return [UInt8](unsafeUninitializedCapacity: bytes.count + 8) { buffer, count in
        let place = UnsafeMutableRawPointer(buffer.baseAddress!)
        for (index, byte) in start.enumerated() { buffer[index] = byte }
        let text = PrefixInteger.write(
            bytes.count, mask: 0x7F, pattern: 0, to: place + start.count)
        for (index, byte) in bytes.enumerated() {
            (text + index).storeBytes(of: byte, as: UInt8.self)
        }
        count = text + bytes.count - place
    }
}

/// A head or trailer section, as text, with what was found; or the reason why it is refused.
struct Assembled<Facts: Equatable>: Equatable {
    var text: String
    var facts: Facts
}

private func text(_ memory: [UInt8], _ count: Int) -> String {
    String(String.UnicodeScalarView(memory.prefix(count).map(Unicode.Scalar.init)))
}

/// How a request is assembled.
struct RequestStyle {
    var style = RequestAssembler.TargetStyle.origin
    var isSecure = true
    var limits = HeadLimits()
    var memoryBytes = 40_000
    var endsStream = false
}

/// Decodes a block by a decoder and assembles a request of it.
func request(
    _ block: [UInt8], _ style: RequestStyle = RequestStyle(), by decoder: inout HeaderDecoder
) throws -> Assembled<AssembledRequest> {
    var memory = [UInt8](repeating: 0xEE, count: style.memoryBytes)
    let facts = try memory.withUnsafeMutableBytes { memory in
        var assembler = RequestAssembler(
            memory, style: style.style, isSecure: style.isSecure, limits: style.limits)
        try decoder.decode(block.span, into: &assembler)
        return try assembler.finish(endsStream: style.endsStream)
    }
    return Assembled(text: text(memory, facts.count), facts: facts)
}

/// Assembles a request of fields.
func request(
    _ fields: [(String, String)], _ style: RequestStyle = RequestStyle()
) throws -> Assembled<AssembledRequest> {
    var decoder = HeaderDecoder()
    return try request(block(fields), style, by: &decoder)
}

/// Assembles a response of fields.
func response(
    _ fields: [(String, String)], endsStream: Bool = false, limits: HeadLimits = HeadLimits()
) throws -> Assembled<AssembledResponse> {
    var decoder = HeaderDecoder()
    var memory = [UInt8](repeating: 0xEE, count: 40_000)
    let facts = try memory.withUnsafeMutableBytes { memory in
        var assembler = ResponseAssembler(memory, limits: limits)
        try decoder.decode(block(fields).span, into: &assembler)
        return try assembler.finish(endsStream: endsStream)
    }
    return Assembled(text: text(memory, facts.count), facts: facts)
}

/// Assembles trailers of fields.
func trailers(
    _ fields: [(String, String)], limits: ChunkedLimits = ChunkedLimits()
) throws -> String {
    var decoder = HeaderDecoder()
    var memory = [UInt8](repeating: 0xEE, count: 40_000)
    let count = try memory.withUnsafeMutableBytes { memory in
        var assembler = TrailerAssembler(memory, limits: limits)
        try decoder.decode(block(fields).span, into: &assembler)
        return try assembler.finish()
    }
    return text(memory, count)
}
