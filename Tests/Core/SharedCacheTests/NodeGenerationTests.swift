import Testing

@testable import SharedCache

@Suite("The number of what a node of a cluster stores")
struct NodeGenerationTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `is the same for all gateways`() {
        let generation = Sample.token(1)
        #expect(generation.ofNode(bytes("run")) == Sample.token(1).ofNode(bytes("run")))
        #expect(generation.ofNode(bytes("run"))?.bytes.count == SharedToken.byteCount)
    }

    @Test func `is another one for each node, run and generation`() {
        let tokens = [
            Sample.token(1).ofNode(bytes("run")), Sample.token(1).ofNode(bytes("other")),
            Sample.token(1).ofNode(bytes("run2")), Sample.token(1).ofNode([]),
            Sample.token(2).ofNode(bytes("run")), Sample.token(1), Sample.token(2),
        ]
        #expect(Set(tokens).count == tokens.count)
    }
}
