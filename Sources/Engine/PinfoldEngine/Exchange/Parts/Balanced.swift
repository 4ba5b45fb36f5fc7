extension Exchange {
    /// The way of a request to one of several servers.
    struct Balanced {
        let balancer: LoadBalancer
        /// The value of the cookie by which the client is bound; `nil` if it sent none.
        let cookie: [UInt8]?
        /// The server that it is, or was, sent to; `nil` while none is chosen.
        private(set) var server: Int?
        /// Those that it was sent to in vain.
        private(set) var tried = ServerMask()
        /// How often it has been sent to another server.
        private(set) var retries = 0

        init(_ balancer: LoadBalancer, cookie: [UInt8]?) {
            self.balancer = balancer
            self.cookie = cookie
        }

        /// The server's origin, whose connections carry the request; `nil` while none is chosen.
        private(set) var origin: Origin?
        /// What is known about the server.
        private(set) var state: ServerState?

        /// The server that the cookie names.
        var bound: Int? { cookie.flatMap { balancer.set.server(ofCookie: $0.span) } }

        /// Those that another attempt would not go to.
        var triedWithThis: ServerMask {
            var all = tried
            if let server { all.insert(server) }
            return all
        }

        /// - Parameter ruled: its origin by the ways that a rule names; `nil` if none does.
        mutating func go(to server: Int, by ruled: Origin? = nil) {
            self.server = server
            origin = ruled ?? balancer.servers[server]
            state = balancer.set.servers[server]
        }

        /// The server has failed, and another is to be chosen.
        mutating func tryAnother() {
            tried = triedWithThis
            retries += 1
            leave()
        }

        mutating func leave() {
            server = nil
            origin = nil
            state = nil
        }
    }
}
