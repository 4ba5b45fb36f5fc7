import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The section tracing")
struct TracingSectionTests {
    @Test(arguments: [
        ("0%", 0), ("1%", 10_000), ("0.5%", 5_000), ("12.25%", 122_500), ("0.0001%", 1),
        ("100%", 1_000_000), ("100.0000%", 1_000_000), ("007%", 70_000),
    ])
    func `a share is read in millionths and printed back`(_ text: String, _ millionths: Int) {
        #expect(Share.millionths(text) == millionths)
        #expect(Share.millionths(Share.text(millionths: millionths)) == millionths)
    }

    @Test(arguments: [
        "", "%", "1", "1 %", ".5%", "1.%", "1.00001%", "100.0001%", "101%", "1000%", "-1%", "1,5%",
        "1e1%", "+1%", "1.2.3%", "½%", "1%%",
    ])
    func `what is no share is refused`(_ text: String) { #expect(Share.millionths(text) == nil) }

    @Test(arguments: [
        ("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces"),
        ("http://127.0.0.1:4318/", "http://127.0.0.1:4318/v1/traces"),
        ("https://otel.example/tenant", "https://otel.example/tenant/v1/traces"),
        ("https://otel.example/v1/traces", "https://otel.example/v1/traces"),
        ("http://[::1]:4318", "http://[::1]:4318/v1/traces"),
    ])
    func `the path of the service is added to the collector's`(_ text: String, _ url: String)
        throws
    {
        let loaded = try load("tracing: { otlp: '\(text)' }")
        #expect(loaded.tracing.otlp?.description == url)
        #expect(try load(loaded.effectiveYAML()) == loaded)
    }

    @Test(arguments: [
        "127.0.0.1:4318", "ftp://a", "http://user@a/", "http://a/?b", "http://a/#b", "", "http://",
    ])
    func `what is no collector is refused`(_ text: String) {
        #expect(throws: ConfigurationErrors.self) { try load("tracing: { otlp: '\(text)' }") }
    }

    @Test func `there can be no collector`() throws {
        #expect(try load("tracing: { otlp: none, traceparent: off }").tracing.otlp == nil)
        #expect(try load("tracing: { traceparent: 'off' }").tracing.traceparent == .off)
    }
}
