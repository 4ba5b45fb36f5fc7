/// Whether a response that is being stored is received to its end if its client leaves.
package enum CacheFill: String, Sendable, CaseIterable {
    case always
    /// Only as long as other clients read it or wait for it.
    case whileWanted
}

/// The two tiers of the response cache.
package struct CacheConfiguration: Sendable, Equatable {
    /// If false, nothing is stored and nothing is answered from the cache.
    package var isEnabled = true
    /// Whether it is shared by several users, as a gateway's is; otherwise it belongs to one
    /// client.
    package var isShared = true
    /// The size of the memory tier; 0 if nothing is kept in memory.
    package var memoryBytes = 64 << 20
    /// The size of the disk tier; 0 if there is no disk tier.
    package var diskBytes = 1 << 30
    /// The maximum number of responses in the disk tier.
    package var diskEntries = 524_288
    /// The maximum number of variants (by Vary) of one URL.
    package var variantsPerURL = 64
    /// The absolute path of the directory of `cache.sqlite`; it need not exist yet.
    package var path = ""
    /// Where reports of pin failures are queued until they are delivered: a directory next to the
    /// cache's database, whether or not there is a cache.
    package var reportFolder: String { inFolder("pin-reports") }
    /// The file that records when which pin matched; in the same directory.
    package var pinUseFile: String { inFolder("pin-use") }
    /// The database of the servers whose keys are remembered; in the same directory.
    package var observedPinsFile: String { inFolder("observed-pins.sqlite") }
    /// The file with the key of the cookies that bind clients to servers; in the same directory.
    package var stickyKeyFile: String { inFolder("sticky-key") }

    /// The last policy that was verified, as it was received; in the same directory.
    package var policyFile: String { inFolder("policy.yaml") }

    /// Up to which purge of other gateways everything has been carried out; in the same directory.
    package var fleetPositionFile: String { inFolder("fleet-position") }
    /// The cache's database.
    package var databaseFile: String { inFolder("cache.sqlite") }
    /// The folder of the policies that were in force before, if they came by way of the engine;
    /// likewise.
    package var policyFolder: String { inFolder("policies") }

    private func inFolder(_ name: String) -> String {
        path + (path.hasSuffix("/") ? "" : "/") + name
    }

    /// The largest body that is stored. A tier that is smaller than this stores less.
    package var maximumObjectBytes = 256 << 20
    package var fill = CacheFill.always
    /// Request fields, in lower case, that make a request bypass the cache unless they are part of
    /// its key.
    package var bypassFields = Self.defaultBypassFields
    /// Who may purge with requests of the method PURGE; `nil` if that is an ordinary method.
    package var purge: PurgeConfiguration?
    /// The level that is shared with other gateways; `nil` for none.
    package var shared: SharedCacheConfiguration?

    /// Creates the defaults.
    package init() {}

    /// Whether the store can be kept: everything else is policy, which a reload changes.
    package func hasSameStore(as other: CacheConfiguration) -> Bool {
        var policy = other
        policy.bypassFields = bypassFields
        policy.fill = fill
        policy.purge = purge
        return self == policy
    }

    /// Fields that servers and frameworks are known to use for choosing their response.
    package static let defaultBypassFields = [
        "forwarded", "x-forwarded-host", "x-forwarded-port", "x-forwarded-prefix",
        "x-forwarded-proto", "x-forwarded-scheme", "x-forwarded-server", "x-host",
        "x-http-method", "x-http-method-override", "x-method-override", "x-original-url",
        "x-rewrite-url",
    ]
}
