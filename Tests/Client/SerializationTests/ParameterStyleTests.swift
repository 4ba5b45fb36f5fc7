import Documents
import FoundationEssentials
import Testing

@testable import PinfoldClient

private struct Search: Encodable, Sendable {
    var createdAfter = Date(timeIntervalSince1970: 1.5)
    var pageSize = 10
    var token = Data([1, 2])
}

@Suite("The style of parameters")
struct ParameterStyleTests {
    @Test(
        arguments: [
            (
                ParameterStyle(),
                "createdAfter=1970-01-01T00%3A00%3A01.5Z&pageSize=10&token=AQI%3D"
            ),
            (
                ParameterStyle(dates: .secondsSince1970),
                "createdAfter=1.5&pageSize=10&token=AQI%3D"
            ),
            (
                ParameterStyle(dates: .millisecondsSince1970),
                "createdAfter=1500&pageSize=10&token=AQI%3D"
            ),
            (
                ParameterStyle(dates: .secondsSince1970, keys: .snakeCase, data: .bytes),
                "created_after=1.5&page_size=10&token%5B%5D=1&token%5B%5D=2"
            ),
        ] as [(ParameterStyle, String)])
    func `decides about names, dates and data`(style: ParameterStyle, query: String) throws {
        let made = try RequestParameters(encoding: Search(), style: style)
        #expect(try made.query() == query)
    }

    @Test func `counts dates from 2001 if they encode themselves`() throws {
        let style = ParameterStyle(dates: .deferredToDate)
        let made = try RequestParameters(
            encoding: ["a": Date(timeIntervalSinceReferenceDate: 2)], style: style)
        #expect(try made.query() == "a=2")
    }

    @Test func `leaves the decision to an encoder of the caller's`() throws {
        var style = ParameterStyle(dates: .secondsSince1970)
        style.encoder = {
            let encoder = JSONEncoder()
            encoder.outputFormatting = .sortedKeys
            encoder.keyEncodingStrategy = .convertToSnakeCase
            encoder.dateEncodingStrategy = .millisecondsSince1970
            return encoder
        }
        let made = try RequestParameters(encoding: Search(), style: style)
        #expect(try made.query() == "created_after=1500&page_size=10&token=AQI%3D")
    }

    @Test func `applies to the members of a dictionary, but not to its keys`() throws {
        let made = try RequestParameters(
            ["thisKey": Search(), "when": Date(timeIntervalSince1970: 2)],
            style: ParameterStyle(dates: .secondsSince1970, keys: .snakeCase))
        #expect(made["when"] == 2)
        #expect(made["thisKey"]?["page_size"] == 10)
    }
}
