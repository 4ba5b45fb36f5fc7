import CachePolicy
import HTTPCore
import PinfoldConfiguration
import Transformation

extension Origin {
    /// How an origin's responses are cached. It is immutable, so that it can be used in place
    /// instead of being copied for each request.
    final class Caching {
        /// The cache's policy, with the route's own part of the key.
        let options: PolicyOptions
        /// The request fields that bypass the cache.
        let bypassFields: BypassFields
        /// Whether what is being stored is received to its end if its client leaves.
        let fill: CacheFill
        /// Bytes of the slices in which responses are requested; `nil` for what clients request.
        let sliceBytes: Int?
        /// How queries become a part of the key; `nil` if they are that as they are.
        let query: KeyRules?
        /// Further conditions under which requests bypass the cache; usually `nil`, for none.
        let conditions: BypassConditions?
        /// What changes in heads for clients because of the cache; `nil` for nothing.
        let sentHead: ResponseHeadRules?

        init(
            options: PolicyOptions = PolicyOptions(), bypassFields: BypassFields = BypassFields([]),
            fill: CacheFill = .whileWanted, sliceBytes: Int? = nil
        ) {
            self.options = options
            self.bypassFields = bypassFields
            self.fill = fill
            self.sliceBytes = sliceBytes
            query = nil
            conditions = nil
            sentHead = nil
        }

        /// - Parameter route: the rules for the request's path; `nil` if there are none.
        init(
            of origin: Origin, _ route: CacheRuleSet.Route?, _ entry: HostEntry?,
            _ policy: PolicySnapshot
        ) {
            let rules = route?.rules ?? entry?.cache ?? CacheRules()
            let isFixed = origin.key.isFixed
            let configured = policy.configuration.cache
            var options = policy.cacheOptions
            let nominated =
                (entry?.keyFields(under: rules) ?? [])
                + (origin.key.forwarding?.traits.nominatedFields ?? [])
            options.nominatedFields = nominated.map { Array($0.utf8) }
                .filter { $0.count <= VaryKey.maximumNameBytes }
            options.trustsLastModified = !(entry?.response.translates ?? false)
            var own = route.map { RouteOptions($0.rules) } ?? RouteOptions()
            if isFixed, rules.targetedFields == nil {
                own.targetedFields = [PolicyOptions.cdnCacheControl]
            }
            if let forwarding = origin.key.forwarding, forwarding.mode != .none {
                own.gatewayFields = [Array("x-forwarded-for".utf8), Array("forwarded".utf8)]
            }
            options.route = own
            if let route { options.apply(route.rules) }
            self.options = options
            let bypass = BypassFields(
                configured.bypassFields + (route?.rules.bypass.fields ?? []),
                except: rules.key.fields ?? [])
            // A reverse route's upstream uses the gateway's own.
            bypassFields = isFixed ? bypass.removing(.forwarding) : bypass
            fill = rules.fill ?? configured.fill
            sliceBytes = rules.sliceBytes
            query = route?.query
            let conditions = route?.rules.bypass ?? BypassConditions()
            let hasConditions =
                !(conditions.cookies ?? []).isEmpty || !(conditions.parameters ?? []).isEmpty
            self.conditions = hasConditions ? conditions : nil
            sentHead = route?.sentHead
        }
    }
}

extension RouteOptions {
    /// What rules come to.
    fileprivate init(_ rules: CacheRules) {
        self.init()
        freshness = rules.freshness
        targetedFields = (rules.targetedFields ?? []).map { Array($0.lowercasedASCII.utf8) }
        staleIfErrorSeconds = rules.staleIfErrorSeconds ?? 0
        ignoredFields = (rules.key.ignoredFields ?? []).map { Array($0.utf8) }
        meanings = FieldMeanings(fields: rules.key.normalizedFields ?? [])
        compressedTypes = CompressedTypes((rules.compress ?? []).map(\.description))
        isOffline = rules.isOffline ?? false
    }
}

extension PolicyOptions {
    /// What rules change in the policy itself.
    fileprivate mutating func apply(_ rules: CacheRules) {
        staleWhenUnreachableSeconds =
            rules.staleWhenUnreachableSeconds ?? staleWhenUnreachableSeconds
        switch rules.setCookie {
        case .explicit: setCookie = .whenShared
        case .never: setCookie = .never
        case .strip: setCookie = .stripped
        case .always: setCookie = .always
        case nil: break
        }
    }
}
