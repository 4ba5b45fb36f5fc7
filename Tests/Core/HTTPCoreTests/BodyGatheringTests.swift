import HTTPCore
import Testing

@Suite("Parts of a body in one step")
struct BodyGatheringTests {
    /// What was gathered from bytes, in how many runs, and how it ended.
    private struct Body {
        var content: [UInt8] = []
        var runs = 0
        var decoder: BodyDecoder
        var error: WireError?
    }

    /// Feeds bytes in pieces, as they would be received; what is not consumed waits for the next.
    private func gather(
        _ bytes: [UInt8], _ framing: BodyFraming = .chunked, piece: Int = 1 << 20, atMost limit: Int
    ) -> Body {
        var body = Body(decoder: BodyDecoder(framing))
        var input: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: piece) {
            input += bytes[start..<min(bytes.count, start + piece)]
            while !input.isEmpty {
                guard let consumed = step(&input, &body, atMost: limit) else { return body }
                input.removeFirst(consumed)
            }
        }
        return body
    }

    /// One step; `nil` at the end of the body or after an error.
    private func step(_ input: inout [UInt8], _ body: inout Body, atMost limit: Int) -> Int? {
        let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: input.count, alignment: 1)
        defer { memory.deallocate() }
        memory.copyBytes(from: input)
        do throws(WireError) {
            let gathered = try body.decoder.gather(memory, atMost: limit)
            #expect((1...max(1, limit)).contains(gathered.parts))
            switch gathered.step {
            case .data(let offset, let count, let consumed):
                body.content += memory[offset..<(offset + count)]
                body.runs += 1
                return consumed
            case .needMore(let consumed):
                #expect(consumed == input.count)
                return consumed
            case .end: return nil
            }
        } catch {
            body.error = error
            return nil
        }
    }

    private func chunks(_ parts: [String]) -> [UInt8] {
        latin1(parts.map { "\(String($0.utf8.count, radix: 16))\r\n\($0)\r\n" }.joined())
    }

    @Test func `chunks of one byte become one run of content, and the end is known with it`() {
        let bytes = chunks(Array(repeating: "x", count: 1000)) + latin1("0\r\n\r\n")
        let body = gather(bytes, atMost: 10_000)
        #expect(body.content == [UInt8](repeating: UInt8(ascii: "x"), count: 1000))
        #expect(body.runs == 1)
        #expect(body.decoder.isComplete && body.decoder.contentBytes == 1000)
        #expect(body.error == nil)
    }

    @Test(arguments: [1, 2, 3, 7, 64, 1000])
    func `no step takes more parts than it may`(limit: Int) {
        let bytes = chunks((0..<300).map { "part \($0)" }) + latin1("0\r\n\r\n")
        let body = gather(bytes, atMost: limit)
        #expect(body.content == latin1((0..<300).map { "part \($0)" }.joined()))
        #expect(body.runs >= 300 / limit)
        #expect(body.decoder.isComplete)
    }

    @Test(arguments: 1...40)
    func `the content is the same however the bytes arrive`(piece: Int) {
        let parts = ["a", "bc", String(repeating: "d", count: 20), "e", "fgh"]
        let bytes = chunks(parts) + latin1("0\r\nA: b\r\n\r\n")
        for limit in [1, 2, 5, 100] {
            let body = gather(bytes, piece: piece, atMost: limit)
            #expect(body.content == latin1(parts.joined()))
            #expect(body.decoder.isComplete && body.error == nil)
            #expect(body.decoder.chunked.trailers.count == 1)
        }
    }

    @Test func `what comes before an error is content, and the error follows`() {
        let body = gather(chunks(["ab", "c"]) + latin1("2\r\ndeXX"), atMost: 100)
        #expect(body.content == latin1("abcde"))
        #expect(body.error == .unterminatedChunk)
    }

    @Test func `bodies without chunks are as they were`() {
        let body = gather(latin1("hello"), .length(5), atMost: 100)
        #expect(body.content == latin1("hello") && body.decoder.isComplete)
        let open = gather(latin1("1\r\na\r\n"), .untilClose, atMost: 100)
        #expect(open.content == latin1("1\r\na\r\n"))
    }

    @Test func `what follows the body is not touched`() throws {
        var decoder = BodyDecoder(.chunked)
        var bytes = chunks(["a", "b"]) + latin1("0\r\n\r\nGET / HTTP/1.1\r\n")
        let step = try bytes.withUnsafeMutableBytes { try decoder.gather($0, atMost: 100).step }
        #expect(step == .data(offset: 3, count: 2, consumed: 17))
        #expect(Array(bytes[17...]) == latin1("GET / HTTP/1.1\r\n"))
        #expect(Array(bytes[3..<5]) == latin1("ab"))
    }
}
