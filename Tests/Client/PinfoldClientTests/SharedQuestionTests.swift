import Testing

@testable import PinfoldClient

@Suite("A question that several tasks wait for")
struct SharedQuestionTests {
    @Test func `is answered for the others when one of them gives up`() async {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let question = SharedQuestion()
        question.begin {
            for await _ in gate {}
            question.answered(.rejectProtectionSpace)
        }
        let first = Task { await question.answer() }
        let second = Task { await question.answer() }
        first.cancel()
        #expect(await first.value == nil)
        open.finish()
        #expect(await second.value == .rejectProtectionSpace)
        // Who comes later need not wait.
        #expect(await question.answer() == .rejectProtectionSpace)
    }

    @Test func `is cancelled when nobody waits, whenever that is`() async {
        let question = SharedQuestion()
        question.abandon()
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        question.begin {
            for await _ in AsyncStream<Void>.makeStream().stream {}
            end.yield(Task.isCancelled)
        }
        for await isCancelled in ended {
            #expect(isCancelled)
            break
        }
    }

    @Test func `leaves no task waiting, however they are cancelled`() async {
        for _ in 0..<1000 {
            let question = SharedQuestion()
            let tasks = (0..<3).map { _ in Task { await question.answer() } }
            let answering = Task { question.answered(.cancel) }
            tasks[0].cancel()
            tasks[1].cancel()
            let answers = [await tasks[0].value, await tasks[1].value, await tasks[2].value]
            #expect(answers[..<2].allSatisfy { $0 == nil || $0 == .cancel })
            #expect(answers[2] == .cancel)
            await answering.value
        }
    }
}
