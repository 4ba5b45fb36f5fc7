import ImageCodecs
import TestSupport
import Testing

@testable import Imaging

@Suite("Messages of a process that decodes")
struct WorkerMessageTests {
    @Test func `carry a plan`() {
        var plan = ImagePlan()
        #expect(WorkerQuestion(head: WorkerQuestion(plan: plan, count: 0).head)?.plan == plan)
        plan.accepted = [.png, .avif]
        plan.conversions = [.webp: .png, .avif: .jpeg]
        plan.maximumBytes = 1 << 40
        plan.maximumPixels = 1 << 50
        plan.maximumFrames = 7
        plan.maximumResultBytes = 12345
        plan.scale = (ImagePlan.largestSide, 1)
        let question = WorkerQuestion(plan: plan, count: 1 << 40)
        #expect(question.head.count == WorkerMessage.questionBytes)
        #expect(WorkerQuestion(head: question.head) == question)
        // More bytes than the plan allows.
        #expect(WorkerQuestion(head: WorkerQuestion(plan: plan, count: 1 << 40 + 1).head) == nil)
    }

    @Test(
        arguments: [
            .unchanged, .written(.png, count: 0), .written(.jpeg, count: 1 << 40),
            .failed(.notAnImage), .failed(.truncated(.gif)), .failed(.damaged(.avif)),
            .failed(.unsupported(.jpeg)), .failed(.notAccepted(.webp)),
            .failed(.notWritable(.webp)), .failed(.tooManyBytes(limit: 5)),
            .failed(.tooManyPixels(width: 1 << 31, height: 3, limit: 4)),
            .failed(.tooManyFrames(9, limit: 8)), .failed(.resultTooLarge(limit: 0)),
            .failed(.noMemory),
        ] as [WorkerAnswer])
    func `carry an answer`(answer: WorkerAnswer) {
        #expect(answer.head.count == WorkerMessage.answerBytes)
        #expect(WorkerAnswer(head: answer.head) == answer)
    }

    @Test func `of another form are refused`() {
        let head = WorkerAnswer.failed(.tooManyBytes(limit: 1)).head
        #expect(WorkerAnswer(head: Array(head.dropLast())) == nil)
        for (offset, value) in [(0, 0), (4, 13), (5, 1), (6, 5), (15, 0x80)] as [(Int, UInt8)] {
            var changed = head
            changed[offset] = value
            #expect(WorkerAnswer(head: changed) == nil, "byte \(offset)")
        }
        let greeting = Confinement(filtersCalls: true, boundsMemory: false).greeting
        #expect(Confinement(greeting: greeting)?.filtersCalls == true)
        #expect(Confinement(greeting: Array(greeting.dropLast())) == nil)
        #expect(Confinement(greeting: [1] + greeting.dropFirst()) == nil)
        #expect(Confinement(greeting: greeting.dropLast() + [1]) == nil)
        #expect(WorkerQuestion(head: [UInt8](repeating: 0, count: 64)) == nil)
    }

    @Test func `never stop the process, whatever they contain`() {
        let seed: UInt64 = 11
        var random = SeededRandom(seed: seed)
        var taken = 0
        for _ in 0..<20_000 {
            var head = WorkerAnswer.written(.png, count: 100).head
            for _ in 0..<3 { head[4 + random.below(head.count - 4)] = UInt8(random.below(16)) }
            if WorkerAnswer(head: head) != nil { taken += 1 }
        }
        #expect(taken > 0 && taken < 20_000, "seed \(seed)")
    }
}
