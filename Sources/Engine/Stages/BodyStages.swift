import HTTPCore
import Notation

/// Says which stages the content of a message passes. An environment has at most one such
/// provider, and asks it on its thread; most messages pass none.
package protocol BodyStages: AnyObject {
    /// The stages of a request that has content, asked for each time that it is sent: one that goes
    /// out again passes fresh ones.
    func requestStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, to origin: Origin
    ) -> [any BodyStage]

    /// The stages of a final response, forwarded or stored. They are not asked for where there can
    /// be no content (HEAD, 204, 304), nor for the gateway's own replies. Parts of a response (206,
    /// Content-Range) are asked about like all others.
    func responseStages(
        for request: borrowing RequestHead, in bytes: Span<UInt8>, of response: StagedResponse,
        from origin: Origin
    ) -> [any BodyStage]
}

/// What stages are chosen by of a response; valid during the call.
package struct StagedResponse {
    /// The status that the client is sent.
    package let status: UInt16
    /// The status line of the response as it was received and the field lines, each with its CRLF.
    package let head: UnsafeRawBufferPointer
    /// It comes from the cache.
    package let isStored: Bool

    /// The values of the fields of a name, which is given in lower case, in their order.
    package func values(of name: StaticString) -> [UnsafeRawBufferPointer] {
        let span = head.octets
        var values: [UnsafeRawBufferPointer] = []
        for line in head.split(separator: UInt8(ascii: "\n")).dropFirst() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")),
                span.holds(lowercase: name, at: ByteRange(from: line.startIndex, to: colon))
            else { continue }
            var value = line[(colon + 1)...]
            while let first = value.first, Self.isBlank(first) { value.removeFirst() }
            while let last = value.last, Self.isBlank(last) { value.removeLast() }
            values.append(UnsafeRawBufferPointer(rebasing: value))
        }
        return values
    }

    private static func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 9 || byte == 13 }
}
