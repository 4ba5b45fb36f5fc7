import Testing

@testable import PinfoldMetrics

@Suite("Accept and the exposition's format")
struct AcceptTests {
    static let prometheus2 =
        "application/openmetrics-text;version=1.0.0;q=0.5,"
        + "application/openmetrics-text;version=0.0.1;q=0.4,"
        + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
    static let prometheus3 =
        "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,"
        + "application/openmetrics-text;version=0.0.1;q=0.5,"
        + "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.4,"
        + "text/plain;version=0.0.4;q=0.3,*/*;q=0.2"
    static let textOnly =
        "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;"
        + "encoding=delimited;q=0.6,text/plain;version=0.0.4;q=0.5,*/*;q=0.1"
    static let browser =
        "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8"

    static let formats: [(String?, ExpositionFormat)] = [
        (nil, .text), ("", .text), ("  \t", .text), ("*/*", .text),
        (prometheus2, .openMetrics), (prometheus3, .openMetrics), (textOnly, .text),
        (browser, .text),
        ("application/openmetrics-text", .openMetrics),
        ("APPLICATION/OpenMetrics-Text; Version=1.0.0", .openMetrics),
        ("application/openmetrics-text; version=\"1.0.0\"", .openMetrics),
        ("application/openmetrics-text; version=0.0.1", .text),
        ("application/openmetrics-text; version=2.0.0", .text),
        ("application/openmetrics-text;q=0", .text),
        ("application/openmetrics-text;q=0.5, text/plain;q=0.5", .text),
        ("application/openmetrics-text;q=0.501, text/plain;q=0.5", .openMetrics),
        ("application/*, text/*;q=0.9", .openMetrics),
        ("text/plain;q=0, */*", .openMetrics),
        ("text/plain;q=0.1, text/*;q=0.9, application/openmetrics-text;q=0.5", .openMetrics),
        ("application/json", .text),
        ("application/openmetrics-text;q=1.5", .text),
        ("application/openmetrics-text;q=abc", .text),
        ("application/openmetrics-text;q=0.1234, text/plain;q=0.1", .text),
        ("application/openmetrics-text;note=\"a,b;q=0\", text/plain;q=0.5", .openMetrics),
        (",,application/openmetrics-text,,", .openMetrics),
        ("/, */plain, application/, ;", .text),
    ]

    @Test(arguments: formats)
    func `the format with the higher weight is chosen, else text`(
        accept: String?, expected: ExpositionFormat
    ) {
        #expect(ExpositionFormat(accept: accept) == expected)
    }

    static let weights: [(String?, Int)] = [
        (nil, 1000), ("text/plain", 1000), ("text/plain;q=1", 1000), ("text/plain;q=1.000", 1000),
        ("text/plain;q=1.001", 0), ("text/plain;q=0.5", 500), ("text/plain;q=0.05", 50),
        ("text/plain;q=0.005", 5), ("text/plain; q=0.123", 123), ("text/plain;q=0.", 0),
        ("text/plain;q=.5", 0), ("text/plain;q=", 1000), ("text/plain;Q=0.25", 250),
        ("text/html", 0), ("text/*;q=0.3", 300), ("*/*;q=0.2", 200),
        ("*/*;q=0.9, text/*;q=0.3", 300), ("text/*;q=0.3, text/plain;q=0.1", 100),
        ("text/plain;q=0.1, text/plain;q=0.4", 400), ("text/plain2", 0), ("text2/plain", 0),
        ("text/plai", 0),
    ]

    @Test(arguments: weights)
    func `the closest range determines the weight`(accept: String?, expected: Int) {
        #expect(AcceptedMediaTypes(accept).weight(of: "text/plain") == expected)
    }

    static let preferences: [(String?, Bool)] = [
        (nil, false), ("", false), ("*/*", false), ("text/plain", false), ("text/html", false),
        ("application/json", true), ("Application/JSON", true), ("application/*", true),
        ("application/json;q=0", false), ("text/plain, application/json;q=0.2", false),
        ("text/plain;q=0.1, application/json;q=0.2", true), ("application/jsonlines", false),
        ("application/json, text/plain", false), ("application/json, */*;q=0.5", true),
        ("application/json, */*", false), ("text/plain;q=0, */*", true),
        ("application/json-patch+json", false), ("application/problem+json", false),
        ("text/html; note=\"application/json\"", false),
    ]

    @Test(arguments: preferences)
    func `plain text is the default, and JSON is what is liked more`(
        accept: String?, expected: Bool
    ) {
        #expect(AcceptedMediaTypes(accept).prefersJSON == expected)
    }

    @Test func `members beyond the limit are left out`() {
        let filler = Array(repeating: "a/b", count: AcceptedMediaTypes.maximumMembers - 1)
        let within = (filler + ["text/plain"]).joined(separator: ",")
        let beyond = (filler + ["a/b", "text/plain"]).joined(separator: ",")
        #expect(AcceptedMediaTypes(within).weight(of: "text/plain") == 1000)
        #expect(AcceptedMediaTypes(beyond).weight(of: "text/plain") == 0)
    }

    @Test func `the content types are those of the two specifications`() {
        #expect(
            "\(ExpositionFormat.text.contentType)" == "text/plain; version=0.0.4; charset=utf-8")
        #expect(
            "\(ExpositionFormat.openMetrics.contentType)"
                == "application/openmetrics-text; version=1.0.0; charset=utf-8")
    }
}
