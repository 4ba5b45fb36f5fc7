import TestSupport
import Testing

@testable import RedisProtocol

extension RedisPipeline.Answered {
    fileprivate var text: String {
        switch self {
        case .operation(let tag): "\(tag)"
        case .late: "late"
        case .nothing: "nothing"
        }
    }
}

@Suite("Operations that wait for their replies")
struct RedisPipelineTests {
    @Test func `are answered in their order`() throws {
        var pipeline = RedisPipeline()
        for tag in 0..<3 { try pipeline.add(tag, bytes: 10, deadline: 100) }
        #expect(pipeline.count == 3)
        #expect(pipeline.next == 0)
        let answered = (0..<4).map { _ in pipeline.answered().text }
        #expect(answered == ["0", "1", "2", "nothing"])
        #expect(pipeline.count == 0)
        #expect(pipeline.deadline == nil)
    }

    @Test func `end at their deadlines, and keep their places`() throws {
        var pipeline = RedisPipeline()
        try pipeline.add(0, bytes: 1, deadline: 100)
        try pipeline.add(1, bytes: 1, deadline: 110)
        #expect(pipeline.deadline == 100)
        #expect(pipeline.expire(99) == [])
        #expect(pipeline.expire(100) == [0])
        #expect(pipeline.expire(100) == [])
        #expect(pipeline.deadline == 110)
        #expect(pipeline.oldestDeadline == 100)
        #expect(pipeline.next == nil)
        #expect(pipeline.answered().text == "late")
        #expect(pipeline.next == 1)
        #expect(pipeline.answered().text == "1")
        #expect(pipeline.oldestDeadline == nil)
    }

    @Test func `have no deadline before that of an earlier one`() throws {
        var pipeline = RedisPipeline()
        try pipeline.add(0, bytes: 1, deadline: 100)
        try pipeline.add(1, bytes: 1, deadline: 50)
        #expect(pipeline.expire(99) == [])
        #expect(pipeline.expire(100) == [0, 1])
    }

    @Test func `are bounded in number and in bytes that were not sent`() throws {
        var limits = RedisPipeline.Limits()
        limits.operations = 2
        limits.unsentBytes = 10
        var pipeline = RedisPipeline(limits: limits)
        #expect(throws: RedisPipelineError.full) {
            try pipeline.add(0, bytes: 11, deadline: 1)
        }
        try pipeline.add(0, bytes: 10, deadline: 1)
        #expect(throws: RedisPipelineError.full) { try pipeline.add(1, bytes: 1, deadline: 1) }
        pipeline.wrote(4)
        #expect(pipeline.unsentBytes == 6)
        try pipeline.add(1, bytes: 4, deadline: 1)
        pipeline.wrote(10)
        #expect(throws: RedisPipelineError.full) { try pipeline.add(2, bytes: 1, deadline: 1) }
        // One that ended waits for its reply.
        #expect(pipeline.expire(1) == [0, 1])
        #expect(throws: RedisPipelineError.full) { try pipeline.add(2, bytes: 1, deadline: 1) }
        _ = pipeline.answered()
        try pipeline.add(2, bytes: 1, deadline: 1)
    }

    @Test func `may have been carried out if any byte was sent before the end`() throws {
        for sent in 0...6 {
            var pipeline = RedisPipeline()
            for tag in 0..<3 { try pipeline.add(tag, bytes: 2, deadline: 9) }
            pipeline.wrote(sent)
            let ended = pipeline.fail()
            #expect(ended.map(\.tag) == [0, 1, 2])
            #expect(
                ended.map(\.fate)
                    == (0..<3).map { $0 * 2 < sent ? .unanswered : .notSent }, "\(sent)")
            #expect(pipeline.count == 0)
            #expect(pipeline.unsentBytes == 0)
            try pipeline.add(3, bytes: 5, deadline: 1)
            #expect(pipeline.fail().map(\.fate) == [.notSent])
        }
    }

    @Test func `that ended are not told of again`() throws {
        var pipeline = RedisPipeline()
        try pipeline.add(0, bytes: 1, deadline: 1)
        try pipeline.add(1, bytes: 1, deadline: 5)
        try pipeline.add(2, bytes: 1, deadline: 5)
        #expect(pipeline.expire(1) == [0])
        _ = pipeline.answered()
        #expect(pipeline.answered().text == "1")
        #expect(pipeline.fail().map(\.tag) == [2])
    }

    @Test func `are read in pieces if they asked for that`() throws {
        var pipeline = RedisPipeline()
        #expect(!pipeline.streamsBulk)
        try pipeline.add(0, bytes: 1, deadline: 1, streamsBulk: true)
        try pipeline.add(1, bytes: 1, deadline: 1)
        #expect(pipeline.streamsBulk)
        _ = pipeline.expire(1)
        #expect(pipeline.streamsBulk)
        _ = pipeline.answered()
        #expect(!pipeline.streamsBulk)
    }

    /// Compared with a plain list.
    @Test func `behave like a list whatever happens`() throws {
        var random = SeededRandom(seed: 5)
        var pipeline = RedisPipeline()
        var list: [(tag: Int, deadline: Int64, isOver: Bool)] = []
        var now: Int64 = 0
        for tag in 0..<5000 {
            switch random.below(10) {
            case 0..<4:
                let deadline = max(now + Int64(random.below(20)), list.last?.deadline ?? 0)
                if list.count < 1024 {
                    try pipeline.add(tag, bytes: 0, deadline: deadline)
                    list.append((tag, deadline, false))
                }
            case 4..<7:
                let answered = pipeline.answered().text
                guard !list.isEmpty else {
                    #expect(answered == "nothing")
                    continue
                }
                let first = list.removeFirst()
                #expect(answered == (first.isOver ? "late" : "\(first.tag)"))
            case 7..<9:
                now += Int64(random.below(5))
                var ended: [Int] = []
                for index in list.indices where list[index].deadline <= now {
                    if !list[index].isOver { ended.append(list[index].tag) }
                    list[index].isOver = true
                }
                #expect(pipeline.expire(now) == ended)
            default:
                #expect(pipeline.count == list.count)
                #expect(pipeline.deadline == list.first { !$0.isOver }?.deadline)
                #expect(pipeline.oldestDeadline == list.first?.deadline)
            }
        }
    }
}
