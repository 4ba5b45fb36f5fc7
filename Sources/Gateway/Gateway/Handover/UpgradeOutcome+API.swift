// The upgrade as a resource of the API.
extension UpgradeOutcome {
    /// A process that serves.
    struct Process: Sendable {
        var pid: Int
        var version: String
    }

    /// The shape of success.
    static let shape = ObjectShape<Process>(
        "The process that serves from now on.",
        [
            .number("pid", "Its number.") { $0.pid },
            .text("version", "The version of its program.") { $0.version },
        ])

    /// The response that says so.
    var response: AdminResponse {
        switch self {
        case .handedOver(let pid, let version):
            .json(Process(pid: pid, version: version), as: Self.shape)
        case .failed(let reason):
            AdminError(
                500, "not-upgraded", "Not upgraded",
                "the process goes on as before: \(reason)"
            ).response
        case .draining:
            AdminError(
                503, "draining", "Shutting down",
                "the gateway is shutting down, and starts no successor"
            ).response
        }
    }
}

extension AdminResource {
    /// `POST /api/v1/upgrade`
    static func upgrade(
        _ upgrade:
            @escaping @Sendable (_ ended: @escaping @Sendable (UpgradeOutcome) -> Void) ->
            Void
    ) -> AdminResource {
        AdminResource(
            method: .post, path: "/api/v1/upgrade", caller: .operator, name: "upgrade",
            summary: "starts the program again, which takes over, and answers when it serves",
            responses: [
                Response(
                    status: 200, description: "Another process serves; this one finishes.",
                    schema: UpgradeOutcome.shape.schema),
                Response(
                    status: 500, description: "This process goes on as before.",
                    schema: AdminError.shape.schema),
                Response(
                    status: 503, description: "The gateway is shutting down.",
                    schema: AdminError.shape.schema),
            ],
            answer: { _ in
                .later { reply in upgrade { reply($0.response) } }
            })
    }
}
