import EventLoop
import Testing

@testable import PinfoldEngine

@Suite("Requests whose content has not completely arrived")
struct UploadRuleTests {
    @Test(arguments: [
        // limit, uploads, may gather, step
        (256, 0, true, UploadRule.Step.connect), (256, 127, true, .connect),
        (256, 128, true, .gather), (256, 128, false, .connect), (256, 191, false, .connect),
        (256, 192, false, .wait), (1, 0, true, .gather), (1, 0, false, .connect),
        (1, 1, false, .wait), (2, 0, true, .connect), (2, 1, true, .gather),
    ])
    func `half of the connections stream and a quarter is never theirs`(
        limit: Int, uploads: Int, mayGather: Bool, step: UploadRule.Step
    ) {
        #expect(UploadRule(limit: limit).next(uploads: uploads, mayGather: mayGather) == step)
    }

    @Test func `content is gathered in order and up to the bound`() {
        let buffers = BufferPool()
        defer { buffers.close() }
        let gathered = GatheredContent(buffers, of: nil)
        var expected: [UInt8] = []
        var byte: UInt8 = 0
        while !gathered.isFull {
            byte &+= 1
            let part = [UInt8](repeating: byte, count: 3000)
            expected += part
            part.withUnsafeBytes { gathered.append($0) }
        }
        #expect(gathered.count == expected.count)
        #expect(gathered.count < GatheredContent.bound + 3000)
        #expect(Array(gathered.content.readable) == expected)
    }
}
