import CoreMetrics
import HTTPTypes
import MetricsTestKit
import Testing

@testable import PinfoldClient

@Suite("An event monitor that counts")
struct MetricsEventMonitorTests {
    private static func dimensions(
        _ method: String, _ more: (String, String)...
    ) -> [(String, String)] { [("http.request.method", method)] + more }

    /// Sends requests, and returns what was counted.
    private func counted(
        _ mock: MockTransport, _ requests: [HTTPRequest]
    ) async throws -> TestMetrics {
        let metrics = TestMetrics()
        try await withMock(mock) { configuration in
            configuration.eventMonitors = [MetricsEventMonitor(factory: metrics)]
        } _: { session in
            for request in requests { _ = try? await session.data(for: request) }
            await session.finishCallbacks()
        }
        return metrics
    }

    @Test func `times requests by method and status, and counts tasks by their outcome`()
        async throws
    {
        let mock = MockTransport()
        mock.on(.get, "http://a.test/") { _ in TransportResponse(text: "12345") }
        mock.on(.get, "http://a.test/moved") { _ in
            TransportResponse(status: .found, fields: [.location: "/"])
        }
        mock.on(.get, "http://a.test/lost") { _ in throw TransportError.connectionLost }
        let other = try #require(HTTPRequest.Method(rawValue: "BREW"))
        mock.on(other, "http://a.test/") { _ in TransportResponse(status: .notFound) }
        let metrics = try await counted(
            mock,
            [
                try HTTPRequest(.get, "http://a.test/"),
                try HTTPRequest(.get, "http://a.test/moved"),
                try HTTPRequest(.get, "http://a.test/lost"),
                try HTTPRequest(other, "http://a.test/"),
            ])
        let duration = "http.client.request.duration"
        for (dimensions, count) in [
            (Self.dimensions("GET", ("http.response.status_code", "200")), 2),
            (Self.dimensions("GET", ("http.response.status_code", "302")), 1),
            (Self.dimensions("GET", ("error.type", "upstream-closed")), 1),
            (Self.dimensions("_OTHER", ("http.response.status_code", "404")), 1),
        ] {
            #expect(try metrics.expectTimer(duration, dimensions).values.count == count)
        }
        let sizes = try metrics.expectRecorder(
            "http.client.response.body.size", Self.dimensions("GET"))
        #expect(sizes.values.sorted() == [0, 0, 5, 5])
        for (method, outcome, count) in [
            ("GET", "complete", 2), ("GET", "upstream-closed", 1), ("_OTHER", "complete", 1),
        ] {
            let counter = try metrics.expectCounter(
                "pinfold.client.tasks", Self.dimensions(method, ("outcome", outcome)))
            #expect(counter.totalValue == Int64(count))
        }
    }

    @Test func `makes each metric once`() async throws {
        let metrics = TestMetrics()
        let monitor = MetricsEventMonitor(factory: metrics)
        let request = try HTTPRequest(.get, "http://a.test/")
        for _ in 0..<100 {
            monitor.session(
                .didComplete(
                    TaskCompletion(
                        task: .next(), request: request, response: nil, error: nil,
                        metrics: TaskMetrics(task: .next()))))
        }
        monitor.missed(7)
        #expect(metrics.counters.count == 2)
        #expect(try metrics.expectCounter("pinfold.client.events.dropped").totalValue == 7)
    }

    @Test func `does nothing in a program without metrics`() async throws {
        let monitor = MetricsEventMonitor(factory: NOOPMetricsHandler.instance)
        try await withMock(MockTransport { _ in TransportResponse() }) { configuration in
            configuration.eventMonitors = [monitor]
        } _: { session in
            _ = try await session.data(for: try HTTPRequest(.get, "http://a.test/"))
        }
    }
}
