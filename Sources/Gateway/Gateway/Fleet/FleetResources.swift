import Documents
import HTTPCore
import PinfoldConfiguration

extension AdminResource {
    static let fleetPolicyPath = "/api/v1/fleet/policy"

    /// The resources that show the fleet, and change what all of it has in common.
    /// - Parameter fleet: `nil` if the cache is not shared; the resources then say so.
    static func ofFleet(_ fleet: FleetAdministration?, work: @escaping AdminWork) -> [AdminResource]
    {
        [
            view(fleet, work), publish(fleet, work), policies(fleet, work),
            onePolicy(fleet, work),
        ]
    }

    private static let unavailable = Response(
        status: 503, description: "The engine does not answer, or too many others are waiting.",
        schema: AdminError.shape.schema)
    private static let noFleet = Response(
        status: 409, description: "The gateway shares its cache with no others.",
        schema: AdminError.shape.schema)

    /// `GET /api/v1/fleet`
    private static func view(
        _ fleet: FleetAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .get, path: "/api/v1/fleet", caller: .operator, name: "fleet",
            summary: "the gateways that share a cache, and whether they agree on the policy",
            responses: [
                Response(
                    status: 200, description: "The fleet.", schema: FleetView.shape.schema),
                noFleet, unavailable,
            ],
            answer: { request in
                guard let fleet else { return .noFleet }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                return .later { reply in
                    fleet.refresh {
                        let isTaken = work {
                            reply(.json(fleet.lastView, as: FleetView.shape))
                        }
                        if !isTaken { reply(.busy) }
                    }
                }
            })
    }

    /// `POST /api/v1/fleet/policy`
    private static func publish(
        _ fleet: FleetAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .post, path: fleetPolicyPath, caller: .operator, name: "publishPolicy",
            summary: "publishes a signed policy that this gateway would take for all or a share",
            responses: [
                Response(
                    status: 200, description: "The engine has it.",
                    schema: PublishedPolicy.shape.schema),
                Response(
                    status: 422, description: "The gateway would not take it.",
                    schema: AdminError.shape.schema),
                noFleet, unavailable,
            ],
            parameters: [
                Parameter(
                    name: "canary",
                    description: "The share of the gateways that takes it, 1 to 100; 100 if absent."
                )
            ],
            content: Content(
                description: "The signed policy; without content, the newest one that is known.",
                type: Content.bytes, schema: .dictionary([:]),
                maximumBytes: UInt64(PolicyEnvelope.maximumBytes)),
            answer: { request in
                guard let fleet else { return .noFleet }
                guard let percent = percent(of: request) else {
                    return invalid("expected canary, a share of the gateways from 1 to 100")
                }
                let content = request.content ?? []
                return .later { reply in
                    let isTaken = work {
                        publish(content.isEmpty ? nil : content, percent, fleet, reply)
                    }
                    if !isTaken { reply(.busy) }
                }
            })
    }

    private static func percent(of request: AdminRequest) -> Int? {
        let query = AdminQuery(target: request.target)
        guard query.unknown(besides: ["canary"]) == nil else { return nil }
        return query["canary"].map { FleetShare.percent($0) } ?? 100
    }

    private static func publish(
        _ bytes: [UInt8]?, _ percent: Int, _ fleet: FleetAdministration,
        _ reply: @escaping @Sendable (AdminResponse) -> Void
    ) {
        let envelope: PolicyEnvelope
        do throws(PolicyPublishing.RefusalReason) {
            envelope = try fleet.publishing.verified(bytes, offered: fleet.offers.last?.envelope)
        } catch {
            let status: UInt16 = error == .notConfigured ? 409 : 422
            return reply(
                AdminError(status, "policy-refused", "Policy refused", error.text).response)
        }
        fleet.engine.publish(envelope.bytes, percent) { isWritten in
            guard isWritten else {
                return reply(
                    AdminError(
                        503, "engine-away", "No engine",
                        "the engine of cache.shared does not answer; nothing was published"
                    ).response)
            }
            reply(
                .json(
                    PublishedPolicy(
                        serial: envelope.serial, hash: envelope.hash, percent: percent),
                    as: PublishedPolicy.shape))
        }
    }

    /// `GET /api/v1/fleet/policy`
    private static func policies(
        _ fleet: FleetAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .get, path: fleetPolicyPath, caller: .operator, name: "fleetPolicies",
            summary: "the policies that this gateway knows, which can be published again",
            responses: [
                Response(
                    status: 200, description: "Their serials.", schema: KnownPolicies.shape.schema),
                noFleet, unavailable,
            ],
            answer: { request in
                guard let fleet else { return .noFleet }
                if let refusal = refusal(ofQueryOf: request) { return refusal }
                return .worked(by: work) {
                    .json(KnownPolicies(fleet), as: KnownPolicies.shape)
                }
            })
    }

    /// `GET /api/v1/fleet/policy/{serial}`
    private static func onePolicy(
        _ fleet: FleetAdministration?, _ work: @escaping AdminWork
    ) -> AdminResource {
        AdminResource(
            method: .get, path: fleetPolicyPath + "/{serial}", caller: .operator,
            name: "fleetPolicy", summary: "a signed policy that this gateway knows",
            responses: [
                Response(
                    status: 200, description: "The policy as it was signed.",
                    schema: .dictionary(["type": .string("string")]),
                    type: "application/yaml"),
                Response(
                    status: 404, description: "It is not known here.",
                    schema: AdminError.shape.schema),
                noFleet, unavailable,
            ],
            parameters: [
                Parameter(
                    name: "serial", description: "Its serial.", isRequired: true, isInPath: true)
            ],
            answer: { request in
                guard let fleet else { return .noFleet }
                let last = request.path.dropFirst(fleetPolicyPath.count + 1)
                guard let serial = PolicyEnvelope.serial(last) else {
                    return invalid("expected a serial, a whole number from 1 to 2^53 - 1")
                }
                return .worked(by: work) {
                    let found = fleet.publishing.policy(
                        serial, offered: fleet.offers.last?.envelope)
                    guard let found else {
                        return AdminError(
                            404, "not-found", "Not found",
                            "there is no policy with the serial \(serial) on this gateway"
                        ).response
                    }
                    return AdminResponse(
                        status: 200, contentType: "application/yaml",
                        fields: [AdminSite.noStore], body: found.bytes)
                }
            })
    }
}

extension AdminAnswer {
    /// The cache is not shared.
    fileprivate static var noFleet: AdminAnswer {
        .problem(
            409, "no-fleet", "No fleet",
            "the gateway shares its cache with no others (cache.shared is not set)")
    }
}

/// A policy that the engine has.
private struct PublishedPolicy: Sendable {
    var serial: Int64
    var hash: String
    var percent: Int

    static let shape = ObjectShape<PublishedPolicy>(
        "A policy that the engine has. Each gateway takes it within a few seconds, or refuses it.",
        [
            .number("serial", "Its serial.") { Int($0.serial) },
            .text("hash", "The SHA-256 of what is signed, in hex.") { $0.hash },
            .number("percent", "The share of the gateways that is to take it.") { $0.percent },
        ])
}

/// The policies that a gateway knows.
private struct KnownPolicies: Sendable {
    var newest: PolicyEnvelope?
    var percent: Int?
    var inForce: Int64?
    var serials: [Int64]

    init(_ fleet: FleetAdministration) {
        let offered = fleet.offers.last
        newest = fleet.publishing.newest(offered: offered?.envelope)
        percent = newest.flatMap { newest in
            offered.flatMap { $0.envelope == newest.bytes ? $0.percent : nil }
        }
        inForce = fleet.publishing.policies.standing.inForce?.serial
        serials = fleet.publishing.serials(offered: offered?.envelope)
    }

    private struct Serial: Sendable { var value: Int64 }

    private static let serial = ObjectShape<Serial>(
        "A policy.", [.number("serial", "Its serial.") { Int($0.value) }])

    static let shape = ObjectShape<KnownPolicies>(
        "The policies that this gateway knows.",
        [
            .optionalNumber("newest", "The serial of the newest that is signed by its keys.") {
                $0.newest.map { Int($0.serial) }
            },
            .optionalNumber("percent", "The share of the gateways that it was published for.") {
                $0.percent
            },
            .optionalNumber("inForce", "The serial of the one in force here.") {
                $0.inForce.map { Int($0) }
            },
            .list("known", serial, "All of them, the highest serial first.") {
                $0.serials.map { Serial(value: $0) }
            },
        ])
}
