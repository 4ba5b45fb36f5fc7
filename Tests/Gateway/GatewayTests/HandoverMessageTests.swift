import Supervision
import Testing

@testable import Gateway

private let messages: [HandoverMessage] = [
    .sockets([], isLast: true),
    .sockets(
        [
            .opened(name: "proxy", address: "127.0.0.1:0", isAdmin: false),
            .opened(name: "a \"name\"\n", address: "[::]:8080", isAdmin: true),
            .passed(name: "web"),
        ], isLast: false),
    .counters, .cache(folder: "/var/cache"), .lock, .ticketKeys, .accept, .leaving,
    .ready(version: "1.2.3", unused: [.passed(name: "web")]),
    .failed("no \u{1F600} file"),
]

@Suite("What a gateway and its successor tell each other")
struct HandoverMessageTests {
    @Test(arguments: messages)
    func `is read as it was written`(message: HandoverMessage) {
        #expect(HandoverMessage(message.bytes) == message)
    }

    @Test(arguments: [
        "", "{}", "[]", "null", "{\"message\":1}", "{\"message\":\"another\"}",
        "{\"message\":\"sockets\"}", "{\"message\":\"sockets\",\"isLast\":true}",
        "{\"message\":\"sockets\",\"isLast\":true,\"sockets\":[{}]}",
        "{\"message\":\"sockets\",\"isLast\":1,\"sockets\":[]}",
        "{\"message\":\"sockets\",\"isLast\":true,\"sockets\":[{\"name\":\"x\",\"address\":\"\"}]}",
        "{\"message\":\"ready\"}", "{\"message\":\"failed\",\"reason\":null}",
        "{\"message\":\"cache\"}", "{\"message\":\"accept\"",
    ])
    func `is nothing else`(text: String) {
        #expect(HandoverMessage(Array(text.utf8)) == nil)
    }

    @Test func `may be more in a later version`() {
        let text = "{\"more\":[1],\"message\":\"ready\",\"version\":\"2\",\"pid\":7}"
        #expect(HandoverMessage(Array(text.utf8)) == .ready(version: "2", unused: []))
        let sockets = """
            {"message":"sockets","isLast":true,"sockets":[{"passedAs":"a","more":1}]}
            """
        #expect(
            HandoverMessage(Array(sockets.utf8)) == .sockets([.passed(name: "a")], isLast: true))
    }

    @Test func `goes to a process with the environment of ours`() {
        let invocation = Invocation(
            program: ProgramFile(path: "/x"), arguments: ["x"],
            environment: [
                "PATH=/bin", "LISTEN_PID=1", "LISTEN_FDS=1", "LISTEN_FDNAMES=a", "WATCHDOG_PID=1",
                "WATCHDOG_USEC=5", "NOTIFY_SOCKET=@a", "PINFOLD_HANDOVER=9", "LISTEN_PIDX=1",
            ])
        #expect(
            invocation.environment(descriptor: 3) == [
                "PATH=/bin", "WATCHDOG_USEC=5", "NOTIFY_SOCKET=@a", "LISTEN_PIDX=1",
                "PINFOLD_HANDOVER=3",
            ])
    }

    @Test func `answers all requests for an upgrade`() {
        final class Answers: @unchecked Sendable {
            var all: [UpgradeOutcome] = []
            var wakes = 0
        }
        let answers = Answers()
        let requests = UpgradeRequests { answers.wakes += 1 }
        for _ in 0..<2 { requests.submit { answers.all.append($0) } }
        #expect(answers.wakes == 2)
        #expect(answers.all.isEmpty)
        requests.end(.failed("why"))
        #expect(answers.all == [.failed("why"), .failed("why")])
        requests.submit { answers.all.append($0) }
        requests.close()
        #expect(answers.all.last == .draining)
        requests.submit { answers.all.append($0) }
        #expect(answers.all.count == 4 && answers.all.last == .draining)
        #expect(answers.wakes == 3)
    }
}
