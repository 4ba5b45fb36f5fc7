import HTTPCore
import Testing

/// Each limit at its value, and one past it.
@Suite("Limits of a head")
struct LimitTests {
    private func request(
        method: Int = 3, target: Int = 1, fields: Int = 1, options: Int = 0, value: Int = 1
    ) -> String {
        let name = method == 3 ? "GET" : String(repeating: "M", count: method)
        let path = "/" + String(repeating: "p", count: target - 1)
        var head = "\(name) \(path) HTTP/1.1\r\nHost: " + String(repeating: "h", count: value)
        head += "\r\n" + String(repeating: "X: y\r\n", count: fields - 1)
        if options > 0 {
            let list = (0..<options).map { "o\($0)" }.joined(separator: ",")
            head += "Connection: \(list)\r\n"
        }
        return head + "\r\n"
    }

    @Test func `the default limits are those of the documentation`() {
        let limits = HeadLimits()
        #expect(limits.headBytes == 32_768 && limits.fields == 128)
        #expect(limits.targetBytes == 16_384 && limits.methodBytes == 32)
        #expect(limits.connectionOptions == 32)
        let chunked = ChunkedLimits()
        #expect(chunked.extensionBytes == 4096 && chunked.trailerBytes == 8192)
        #expect(chunked.trailerFields == 32)
    }

    @Test func `a request's head may have as many bytes as its limit`() {
        for extra in 0...20 {
            let text = request(value: 20 + extra)
            let limits = HeadLimits(headBytes: request(value: 30).utf8.count, targetBytes: 16)
            let outcome = requestOutcome(text, limits: limits)
            #expect(outcome.error == (extra <= 10 ? nil : .headTooLarge))
            #expect(outcome.isComplete == (extra <= 10))
        }
    }

    @Test func `a head that never ends is refused at the limit`() {
        let limits = HeadLimits(headBytes: 64, targetBytes: 32)
        let start = "GET / HTTP/1.1\r\nX: "
        let bytes = latin1(start + String(repeating: "y", count: 100))
        #expect(parseRequest(Array(bytes[..<63]), limits: limits) == .needMore)
        #expect(parseRequest(Array(bytes[..<64]), limits: limits) == .refused(.headTooLarge))
        #expect(requestOutcome(bytes, limits: limits) == .refused(.headTooLarge))
        // An error within the limit is reported first; one beyond it is not noticed.
        #expect(requestOutcome(start + "\u{0}", limits: limits).error == .badFieldValueByte)
        let long = start + String(repeating: "y", count: 64) + "\u{0}"
        #expect(requestOutcome(long, limits: limits).error == .headTooLarge)
    }

    @Test func `a target may have as many bytes as its limit`() {
        let limits = HeadLimits(headBytes: 512, targetBytes: 20)
        #expect(requestOutcome(request(target: 20), limits: limits).isComplete)
        #expect(requestOutcome(request(target: 21), limits: limits).error == .targetTooLong)
        let unfinished = "GET /" + String(repeating: "x", count: 20)
        #expect(requestOutcome(unfinished, limits: limits).error == .targetTooLong)
        let bad = "GET /" + String(repeating: "x", count: 20) + "\u{0}"
        #expect(requestOutcome(bad, limits: limits).error == .targetTooLong)
        let fits = "GET /" + String(repeating: "x", count: 19) + "\u{0}"
        #expect(requestOutcome(fits, limits: limits).error == .badTargetByte)
    }

    @Test func `a target that fills the head is too long, not the head`() {
        let limits = HeadLimits(headBytes: 64, targetBytes: 1000)
        #expect(requestOutcome(request(target: 200), limits: limits).error == .targetTooLong)
    }

    @Test func `a method may have as many bytes as its limit`() {
        #expect(requestOutcome(request(method: 32)).isComplete)
        #expect(requestOutcome(request(method: 33)).error == .methodTooLong)
        #expect(requestOutcome(String(repeating: "M", count: 33)).error == .methodTooLong)
        let limits = HeadLimits(methodBytes: 4)
        #expect(requestOutcome(request(method: 4), limits: limits).isComplete)
        #expect(requestOutcome(request(method: 5), limits: limits).error == .methodTooLong)
    }

    @Test func `a head may have as many fields as its limit`() {
        let limits = HeadLimits(fields: 5)
        #expect(requestOutcome(request(fields: 5), limits: limits).isComplete)
        #expect(requestOutcome(request(fields: 6), limits: limits).error == .tooManyFields)
        let response = "HTTP/1.1 200 OK\r\n"
        let five = response + String(repeating: "X: y\r\n", count: 5)
        #expect(responseOutcome(five + "\r\n", limits: limits).isComplete)
        #expect(responseOutcome(five + "Z: y\r\n\r\n", limits: limits).error == .tooManyFields)
    }

    @Test func `Connection may have as many options as its limit`() {
        #expect(requestOutcome(request(options: 32)).isComplete)
        #expect(requestOutcome(request(options: 33)).error == .tooManyConnectionOptions)
        let limits = HeadLimits(connectionOptions: 2)
        let response = "HTTP/1.1 200 OK\r\nConnection: a,b\r\n"
        #expect(responseOutcome(response + "\r\n", limits: limits).isComplete)
        #expect(
            responseOutcome(response + "Connection: c\r\n\r\n", limits: limits).error
                == .tooManyConnectionOptions)
    }

    @Test func `a response's head may have as many bytes as its limit`() {
        let text = "HTTP/1.1 200 OK\r\nX: y\r\n\r\n"
        let count = text.utf8.count
        #expect(responseOutcome(text, limits: HeadLimits(headBytes: count)).isComplete)
        #expect(
            responseOutcome(text, limits: HeadLimits(headBytes: count - 1)).error == .headTooLarge)
        let reason = "HTTP/1.1 200 " + String(repeating: "x", count: 100)
        #expect(responseOutcome(reason, limits: HeadLimits(headBytes: 64)).error == .headTooLarge)
    }

    @Test func `many fields and a long target within the limits are accepted`() {
        let text = request(target: 16_384, fields: 128)
        #expect(parseRequest(latin1(text)).isComplete)
        #expect(parseRequest(latin1(text), .byteByByte) == parseRequest(latin1(text)))
    }
}
