import Testing

@testable import SharedCache

@Suite("The number of what a node of a cluster stores")
struct NodeGenerationTests {
    private func bytes(_ text: String) -> [UInt8] { Array(text.utf8) }

    @Test func `is the same for all gateways`() {
        let generation = Samples.token(1)
        #expect(generation.ofNode(bytes("run")) == Samples.token(1).ofNode(bytes("run")))
        #expect(generation.ofNode(bytes("run"))?.bytes.count == SharedToken.byteCount)
    }

    @Test func `is another one for each node, run and generation`() {
        let tokens = [
            Samples.token(1).ofNode(bytes("run")), Samples.token(1).ofNode(bytes("other")),
            Samples.token(1).ofNode(bytes("run2")), Samples.token(1).ofNode([]),
            Samples.token(2).ofNode(bytes("run")), Samples.token(1), Samples.token(2),
        ]
        #expect(Set(tokens).count == tokens.count)
    }
}
