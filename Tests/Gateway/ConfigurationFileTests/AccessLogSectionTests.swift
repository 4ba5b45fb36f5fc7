import PinfoldConfiguration
import Testing

@testable import Gateway

@Suite("The section log.access")
struct AccessLogSectionTests {
    private func read(_ keys: String) throws -> AccessLogConfiguration {
        let loaded = try load("log: { access: { path: \"-\", \(keys) } }")
        #expect(try load(loaded.effectiveYAML()) == loaded)
        return try #require(loaded.log.access)
    }

    @Test func `the shape without a choice is everything`() throws {
        let access = try read("format: json, fields: [], sample: []")
        #expect(access.path == AccessLogConfiguration.standardOutput)
        #expect(access.fields.isEmpty && access.sampling == AccessLogSampling())
        #expect(try load("log: { format: json }").log.format == .json)
    }

    @Test func `fields are names of a line and of fields of heads`() throws {
        let access = try read("fields: [status, request.User-Agent, response.content-type, sample]")
        #expect(
            access.fields == [
                .known(.status), .request("user-agent"), .response("content-type"), .known(.sample),
            ])
        let all = AccessLogField.Known.allCases.map(\.rawValue).joined(separator: ", ")
        #expect(try read("fields: [\(all)]").fields.count == AccessLogField.Known.allCases.count)
    }

    @Test(arguments: [
        ("stauts", #"there is no field "stauts" (did you mean status?)"#),
        ("first_byte", #"there is no field "first_byte" (did you mean first_byte_us?)"#),
        ("xyz", #"there is no field "xyz""#),
        ("request.", #""" is no name of a field"#),
        ("request.a b", #""a b" is no name of a field"#),
        ("request.cookie", "cookie is a secret, which no log shows"),
        ("request.Authorization", "authorization is a secret, which no log shows"),
        ("request.proxy_authorization", "proxy_authorization is a secret, which no log shows"),
        ("response.Set-Cookie", "set-cookie is a secret, which no log shows"),
    ])
    func `what is no field is an error that says what was meant`(name: String, problem: String) {
        let found = errors(of: "log:\n  access:\n    path: \"-\"\n    fields: [time, \(name)]")
        #expect(found.count == 1)
        #expect(
            found.first?.hasPrefix("gateway.yaml:4: log.access.fields[1]: \(problem); expected ")
                == true, "\(found)")
    }

    @Test func `a field twice, too many, and fields of another format are errors`() {
        func problems(_ keys: String) -> [String] {
            errors(of: "log: { access: { path: \"-\", \(keys) } }")
        }
        #expect(
            problems("fields: [time, status, time]") == [
                "gateway.yaml:1: log.access.fields[2]: is listed twice; expected each once"
            ])
        let many = (0...AccessLogField.maximumOfHeads).map { "request.n\($0)" }
        #expect(
            problems("fields: [\(many.joined(separator: ", "))]") == [
                "gateway.yaml:1: log.access.fields: has 33 fields of heads; expected at most 32"
            ])
        #expect(
            problems("format: combined, fields: [time]") == [
                "gateway.yaml:1: log.access.fields: does not apply to format: combined, whose "
                    + "lines are fixed; expected format: json, or no fields"
            ])
    }

    @Test func `rules of samples have a status, a time, a reason and a share`() throws {
        let rules = try read(
            """
            sample: [{ longerThan: 1s, share: 100% }, { status: 2xx, share: 1% },
            { status: [301, 4xx, "500-503"], reason: any, share: 0.5% }]
            """
        ).sampling.rules
        #expect(rules.map(\.shareMillionths) == [1_000_000, 10_000, 5_000])
        #expect(rules.map(\.longerThanMilliseconds) == [1_000, nil, nil])
        #expect(rules.map(\.reason) == [.none, .none, .any])
        #expect(rules.map(\.statuses) == [[], [200...299], [301...301, 400...499, 500...503]])
    }

    @Test(arguments: [
        ("{ status: 2xx }", "sample[0].share: is missing"),
        ("{ status: 6xx, share: 1% }", "sample[0].status: \"6xx\" is not valid"),
        ("{ status: [200, 99], share: 1% }", "sample[0].status[1]: \"99\" is not valid"),
        ("{ status: [], share: 1% }", "sample[0].status: matches nothing"),
        ("{ share: 1 }", "sample[0].share: \"1\" is not valid"),
        ("{ share: 101% }", "sample[0].share: \"101%\" is not valid"),
        ("{ longerThan: 0s, share: 1% }", "sample[0].longerThan: 0s is out of range"),
        ("{ reason: some, share: 1% }", "sample[0].reason: \"some\" is not valid"),
        (
            "{ slower: 1s, share: 1% }", "sample[0].slower: unknown key"
        ),
        ("1%", "sample[0]: is"),
    ])
    func `what is no rule is an error at its place`(rule: String, problem: String) {
        let found = errors(of: "log: { access: { path: \"-\", sample: [\(rule)] } }")
        #expect(found.count == 1)
        #expect(found.first?.hasPrefix("gateway.yaml:1: log.access.\(problem)") == true, "\(found)")
    }

    @Test func `a rule that never applies, and lines that lack their share, cause warnings`() throws
    {
        func found(_ keys: String) throws -> [String] {
            try warnings(of: "log: { access: { path: \"-\", \(keys) } }")
        }
        #expect(
            try found("sample: [{ share: 1% }, { status: 2xx, share: 2% }]") == [
                "gateway.yaml:1: log.access.sample[1]: never applies: sample[0] before it takes "
                    + "all of these"
            ])
        #expect(
            try found("fields: [time], sample: [{ share: 1% }]") == [
                "gateway.yaml:1: log.access.fields: lacks sample: no line tells how many "
                    + "exchanges it stands for"
            ])
        #expect(try found("fields: [time], sample: [{ share: 100% }]") == [])
    }
}
