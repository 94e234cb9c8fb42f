// A GraphQL server with one subscription, which greets in five languages.
const { GraphQLObjectType, GraphQLSchema, GraphQLString } = require("graphql");
const { useServer } = require("graphql-ws/use/ws");
const { WebSocketServer } = require("ws");

async function* greetings() {
  for (const greeting of ["Hi", "Bonjour", "Hola", "Ciao", "Zdravo"]) yield { greetings: greeting };
}
const schema = new GraphQLSchema({
  query: new GraphQLObjectType({ name: "Query", fields: { hello: { type: GraphQLString } } }),
  subscription: new GraphQLObjectType({
    name: "Subscription",
    fields: { greetings: { type: GraphQLString, subscribe: greetings } },
  }),
});
const server = new WebSocketServer({ port: 0, host: "127.0.0.1", path: "/graphql" });
useServer({ schema }, server);
server.on("listening", () => console.log(server.address().port));
