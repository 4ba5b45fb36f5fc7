import Documents
import HTTPCore
import PinfoldEngine

extension AdminResource {
    /// `GET /api/v1/record`
    /// - Parameter source: `nil` if nothing is observed; the resource then says so.
    static func record(_ source: OverviewSource?) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/record", caller: .operator, name: "record",
            summary: "exchanges as entries of an HTTP Archive (HAR), as they end, until the client "
                + "leaves",
            responses: [
                Response(
                    status: 200,
                    description: "Lines, each a JSON object with a type: hello, when every worker "
                        + "records; entry, with an entry of HAR 1.2; dropped, with a count; end. "
                        + "Empty lines say that the gateway is there.",
                    schema: .dictionary(["type": .string("string")]), type: lines),
                Response(
                    status: 503, description: "There are too many recordings, or it shuts down.",
                    schema: AdminError.shape.schema),
            ],
            parameters: RecordingOptions.parameters,
            answer: { request in
                guard let source else { return .noFlows }
                let isFull = request.access.isProven(request.authorization)
                let options: RecordingOptions
                do throws(AdminError) {
                    options = try RecordingOptions(
                        AdminQuery(target: request.target), isFull: isFull,
                        allowsSecrets: request.mayRecordSecrets)
                } catch {
                    return .now(error.response)
                }
                let head = AdminResponse(
                    status: 200, contentType: "application/x-ndjson",
                    fields: [AdminSite.noStore, AdminResponse.Field("X-Accel-Buffering", "no")],
                    body: [])
                guard request.method != .head else { return .now(head) }
                return answer(head, source.observer.record(options))
            })
    }

    private static let lines = "application/x-ndjson"

    private static func answer(
        _ head: AdminResponse, _ beginning: Recordings.Beginning
    ) -> AdminAnswer {
        switch beginning {
        case .records(let pieces): .stream(head, pieces)
        case .tooMany:
            .problem(
                503, "too-many-recordings", "Too many recordings",
                "\(Recordings.limit) recordings are under way already",
                [AdminResponse.Field("Retry-After", "2")])
        case .ending:
            .problem(
                503, "shutting-down", "Shutting down",
                "the gateway shuts down, or another process serves",
                [AdminResponse.Field("Retry-After", "1")])
        }
    }
}
