import Testing

@testable import PinfoldClient

@Suite("A prompt that several tasks wait for")
struct SharedPromptTests {
    @Test func `is answered for the others when one of them gives up`() async {
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let prompt = SharedPrompt<ChallengeDisposition>()
        prompt.begin {
            for await _ in gate {}
            prompt.answered(.rejectProtectionSpace)
        }
        let first = Task { await prompt.answer() }
        let second = Task { await prompt.answer() }
        first.cancel()
        #expect(await first.value == nil)
        open.finish()
        #expect(await second.value == .rejectProtectionSpace)
        // A later task need not wait.
        #expect(await prompt.answer() == .rejectProtectionSpace)
    }

    @Test func `is cancelled when no task waits, at any time`() async {
        let prompt = SharedPrompt<ChallengeDisposition>()
        prompt.abandon()
        let (ended, end) = AsyncStream.makeStream(of: Bool.self)
        prompt.begin {
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
            let prompt = SharedPrompt<ChallengeDisposition>()
            let tasks = (0..<3).map { _ in Task { await prompt.answer() } }
            let answering = Task { prompt.answered(.cancel) }
            tasks[0].cancel()
            tasks[1].cancel()
            let answers = [await tasks[0].value, await tasks[1].value, await tasks[2].value]
            #expect(answers[..<2].allSatisfy { $0 == nil || $0 == .cancel })
            #expect(answers[2] == .cancel)
            await answering.value
        }
    }
}
